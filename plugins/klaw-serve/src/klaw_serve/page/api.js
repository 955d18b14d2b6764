// Asking the server. Every path is relative, so that an agent's page below /agents/NAME/ asks that agent's memory.

const KEY = `klaw-token ${location.pathname}`;

export class ApiError extends Error {
  constructor(status, message, hint) { super(message); this.status = status; this.hint = hint; }
}

export const token = () => sessionStorage.getItem(KEY);
export const setToken = (value) => sessionStorage.setItem(KEY, value);
const headers = () => ({ Authorization: `Bearer ${token()}` });

let shown = new AbortController();

// Ends the questions of the view that was shown: a late answer would put it in the place of another.
export function leaveView() {
  shown.abort();
  shown = new AbortController();
}

// `ofView`: only the view that asks needs the answer, and goes no further once it is left. `ending`: nor once this is aborted.
export async function api(path, { method = "GET", query = {}, body, ofView = method === "GET", ending } = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) for (const each of [value].flat()) if (each !== "" && each != null) given.append(name, each);
  const url = `api/${path}${given.size ? `?${given}` : ""}`;
  const signal = ending ? AbortSignal.any([shown.signal, ending]) : ofView ? shown.signal : undefined;
  let response;
  try {
    response = await fetch(url, { method, headers: headers(), signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    if (signal?.aborted) return new Promise(() => {});
    throw new ApiError(0, "The server does not respond.", "Is klaw serve running?");
  }
  const found = await response.json().catch(() => ({}));
  if (signal?.aborted) return new Promise(() => {});
  if (!response.ok) throw new ApiError(response.status, found.error ?? `status ${response.status}`, found.hint);
  return found;
}

// Calls back at every event until the returned function is called. An EventSource could not send the token.
export function events(callback) {
  const ending = new AbortController();
  (async () => {
    const response = await fetch("api/events", { headers: headers(), signal: ending.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", part; !(part = await reader.read()).done;) {
      const frames = (rest + part.value).split("\n\n");
      rest = frames.pop();
      for (const frame of frames) {
        const kind = frame.match(/^event: (.*)$/m)?.[1], data = frame.match(/^data: (.*)$/m)?.[1];
        if (kind) callback(kind, JSON.parse(data));
      }
    }
  })().catch(() => {});
  return () => ending.abort();
}
