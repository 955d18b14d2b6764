/**
 * A client for `klaw serve`.
 *
 * Each method is one operation of https://…/openapi.json, with the names of arguments that the server has. All calls
 * are JSON-RPC: a question may be longer than a URL.
 */

import type { Answers, Message } from "./answers.js";
import type { Arguments } from "./operations.js";

export type * from "./answers.js";
export { METHODS } from "./operations.js";
export type { Arguments } from "./operations.js";

/** The name of an operation: `memory.search`. */
export type Method = keyof Arguments;

/** All arguments of an operation but those that a method takes one by one. */
type Options<M extends Method, Given extends string = never> = Omit<Arguments[M], Given> & Call;

export interface Call {
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
}

export interface Settings {
  /** The address of the server; default http://127.0.0.1:8490. */
  url?: string | undefined;
  /** The token that `klaw serve token` prints. */
  token?: string | undefined;
  /** The name of an agent, to use its own memory; default the owner's. */
  agent?: string | undefined;
  /** How long a call may take, in milliseconds; default 60,000. */
  timeoutMs?: number | undefined;
  /** Sends the requests in place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/** Something that happened in the memory: `index`, `progress`, `forget` or `message`. */
export interface KlawEvent {
  kind: string;
  data: unknown;
}

/** The address that `klaw serve` listens on by default. */
export const DEFAULT_URL = "http://127.0.0.1:8490";

const DEFAULT_TIMEOUT_MS = 60_000;

/** A call that failed. `status` is that of HTTP, 0 if there was no answer; `hint` says what to do. */
export class KlawError extends Error {
  readonly status: number;
  readonly hint: string;

  constructor(status: number, message: string, hint = "", options?: ErrorOptions) {
    super(hint ? `${message} (${hint})` : message, options);
    this.name = "KlawError";
    this.status = status;
    this.hint = hint;
  }
}

/** A memory that `klaw serve` keeps. */
export class Klaw {
  readonly url: string;
  readonly agent: string;
  #token: string;
  #timeoutMs: number;
  #fetch: typeof fetch;

  constructor(settings: Settings = {}) {
    this.url = (settings.url ?? DEFAULT_URL).replace(/\/+$/, "");
    this.agent = settings.agent ?? "";
    this.#token = settings.token ?? "";
    this.#timeoutMs = settings.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#fetch = settings.fetch ?? ((...given) => fetch(...given));
  }

  /** Return a client for an agent's own memory, with its token; default the same token, as the owner's opens all. */
  of(agent: string, token: string = this.#token): Klaw {
    return new Klaw({ url: this.url, token, agent, timeoutMs: this.#timeoutMs, fetch: this.#fetch });
  }

  /** Find the chunks that answer a question, best first. */
  search(query: string, options: Options<"memory.search", "query"> = {}) {
    return this.#with("memory.search", options, { query });
  }

  /** Return the text from memory for a prompt with a message. */
  context(message: string, options: Options<"memory.context", "message"> = {}) {
    return this.#with("memory.context", options, { message });
  }

  /** Save a text; it can be found at once. `supersedes` is the path of the memory that it replaces. */
  save(text: string, options: Options<"memory.save", "text"> = {}) {
    return this.#with("memory.save", options, { text });
  }

  /** Correct a saved text in place: it keeps its source, its date and its tags. */
  replace(path: string, text: string, options: Options<"memory.replace", "path" | "text"> = {}) {
    return this.#with("memory.replace", options, { path, text });
  }

  /** Forget a saved memory, or exclude a note from its workspace. */
  forget(path: string, options: Call = {}) {
    return this.#with("memory.forget", options, { path });
  }

  /** Restore a forgotten note. */
  restore(path: string, options: Call = {}) {
    return this.#with("memory.restore", options, { path });
  }

  /** Read a document, or some of its lines. */
  get(path: string, options: Options<"memory.get", "path"> = {}) {
    return this.#with("memory.get", options, { path });
  }

  /** Yield all documents, by path. */
  async *documents(options: Options<"memory.documents"> = {}) {
    for (let after = options.after ?? ""; ; ) {
      const page = await this.#with("memory.documents", options, { after });
      yield* page.documents;
      if (page.after === null) return;
      after = page.after;
    }
  }

  /** List the newest documents. */
  recent(options: Options<"memory.recent"> = {}) {
    return this.#with("memory.recent", options);
  }

  /** Find facts, the best first; without a query list those that are true, the newest first. */
  facts(query = "", options: Options<"memory.facts", "query"> = {}) {
    return this.#with("memory.facts", options, { query });
  }

  /** Append a message to a chat. */
  append(chat: string, role: Message["role"], content: string, options: Options<"memory.append", "chat" | "role" | "content"> = {}) {
    return this.#with("memory.append", options, { chat, role, content });
  }

  /** Read the last messages of a chat, oldest first. */
  messages(chat: string, options: Options<"memory.messages", "chat"> = {}) {
    return this.#with("memory.messages", options, { chat });
  }

  /** Report what is indexed. */
  status(options: Call = {}) {
    return this.#with("memory.status", options);
  }

  /** Call a tool of the memory, as a language model does; invalid arguments are reported in the answer. */
  tool(name: string, given: Record<string, unknown> = {}, options: Call = {}) {
    return this.#with("memory.tool", options, { name, arguments: given });
  }

  /** Call any operation by its name. Throw KlawError. */
  async call<M extends Method>(method: M, given: Arguments[M], { signal }: Call = {}): Promise<Answers[M]> {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: given });
    const response = await this.#request("/rpc", { method: "POST", body }, signal);
    const { result, error } = response as { result?: Answers[M]; error?: RpcError };
    if (error) throw new KlawError(error.data?.status ?? 400, error.message, error.data?.hint);
    return result as Answers[M];
  }

  /** Report whether the server runs, and whether its model is loaded. It needs no token. */
  async health({ signal }: Call = {}): Promise<{ status: string; warm: boolean }> {
    return (await this.#request("/health", {}, signal)) as { status: string; warm: boolean };
  }

  /** Yield what happens in the memory, from now on, until the server stops or the signal is aborted. */
  async *events({ signal }: Call = {}): AsyncGenerator<KlawEvent> {
    try {
      const response = await this.#send("/api/events", {}, signal);
      let rest = "";
      for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
        const frames = (rest + part).split("\n\n");
        rest = frames.pop()!;
        for (const frame of frames) {
          const kind = /^event: (.*)$/m.exec(frame)?.[1];
          if (kind) yield { kind, data: JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "null") };
        }
      }
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  }

  #with<M extends Method>(method: M, { signal, ...options }: Partial<Arguments[M]> & Call, given: Partial<Arguments[M]> = {}) {
    return this.call(method, { ...options, ...given } as unknown as Arguments[M], { signal });
  }

  /** Return the JSON of an answer. */
  async #request(path: string, init: RequestInit, signal: AbortSignal | undefined): Promise<unknown> {
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      const response = await this.#send(path, init, signal ? AbortSignal.any([signal, timeout]) : timeout);
      return await response.json();
    } catch (error) {
      if (timeout.aborted) throw new KlawError(0, `${this.url} did not answer within ${this.#timeoutMs} ms`, "", { cause: error });
      throw error;
    }
  }

  async #send(path: string, init: RequestInit, signal: AbortSignal | undefined): Promise<Response> {
    const base = this.agent ? `${this.url}/agents/${encodeURIComponent(this.agent)}` : this.url;
    const headers = { ...(this.#token && { authorization: `Bearer ${this.#token}` }), "content-type": "application/json" };
    let response: Response;
    try {
      response = await this.#fetch(base + path, { ...init, headers, signal: signal ?? null });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new KlawError(0, `${this.url} cannot be reached`, "start it with `klaw serve`", { cause: error });
    }
    if (response.ok) return response;
    const told = (await response.json().catch(() => ({}))) as { error?: string; hint?: string };
    throw new KlawError(response.status, told.error ?? `status ${response.status}`, told.hint);
  }
}

interface RpcError {
  code: number;
  message: string;
  data?: { status: number; hint: string };
}
