// Search: the question, the answers while it is typed, and the start page as long as nothing is asked.

import { api, ApiError } from "./api.js";
import { filters, NAMES } from "./filters.js";
import { h, mount, plural } from "./dom.js";
import { shown } from "./results.js";
import { start } from "./start.js";

const PAUSE = 180; // milliseconds without a key until a question counts as typed
const LEAST = 2; // characters
let here = -1;

export async function search(query) {
  const input = h("input", { id: "query", type: "search", value: query.get("q") ?? "", placeholder: "Ask your memory", "aria-label": "Question", autocomplete: "off", enterkeyhint: "search", oninput: () => later() });
  const title = h("h1", { class: "skip" }, "Search"), found = h("div", { id: "found" });
  const count = h("p", { class: "count", role: "status" });
  const narrowed = filters(query, () => later());
  let timer, ending = new AbortController(), asked = null;

  const later = () => { clearTimeout(timer); timer = setTimeout(answer, PAUSE); };
  async function answer() {
    clearTimeout(timer);
    const text = input.value.trim(), given = narrowed.given(), question = JSON.stringify([text, given]);
    if (question === asked) return;
    asked = question;
    ending.abort(); // an answer to what was typed before comes too late
    ending = new AbortController();
    const wanted = new URLSearchParams({ ...(text ? { q: text } : {}), ...narrowed.values() });
    history.replaceState(null, "", `#/search${wanted.size ? `?${wanted}` : ""}`);
    title.textContent = text ? `“${text}”` : "Search";
    document.title = `${title.textContent} · Klaw`;
    here = -1;
    const narrows = Object.keys(narrowed.values()).some((name) => !["mode", "collection"].includes(name)); // these alone choose no texts
    if (text.length < LEAST && !(narrows && !text)) {
      count.textContent = "";
      found.replaceChildren(...(text ? [] : await start(ending.signal)));
      return;
    }
    found.setAttribute("aria-busy", "true");
    try {
      show(await api("search", { query: { query: text, limit: 20, ...given }, ending: ending.signal }), text);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 401) throw error;
      asked = null; // the same question may be asked again
      count.textContent = "";
      found.replaceChildren(h("p", { class: "problem", role: "alert" }, h("strong", {}, error.message), " ", error.hint ?? ""));
    }
    found.removeAttribute("aria-busy");
  }

  function show({ results, notices }, text) {
    const good = results.filter((result) => !result.is_weak), weak = results.filter((result) => result.is_weak);
    count.textContent = [good.length ? `${plural(good.length, "result")}${text ? "" : ", newest first"}` : results.length ? "No good match" : "Nothing found", ...(good.length ? notices : [])].join(" · ");
    found.replaceChildren(
      good.length ? h("ol", { class: "results", id: "results" }, ...good.map((result) => shown(result, text))) : h("div", { class: "none" },
        h("p", {}, said(notices.join(" · ")) || (text ? "No text in memory has these words or a similar meaning." : "No text in memory matches these filters.")), nextSteps(text)),
      ...(weak.length ? [h("details", { class: "others" }, h("summary", {}, plural(weak.length, "weak match", "weak matches"), h("span", { class: "meta" }, " that most likely do not answer the question")),
        h("ol", { class: "results" }, ...weak.map((result) => shown(result, text))))] : []));
  }

  const said = (text) => text.replace(/^no good match: */, "").replace(/^./, (first) => first.toUpperCase()).replace(/[^.]$/, "$&.");
  const nextSteps = (text) => h("ul", { class: "steps" },
    Object.keys(narrowed.values()).length > 0 && h("li", {}, h("button", { type: "button", onclick: () => narrowed.clear() }, "Search without filters")),
    text !== "" && h("li", {}, "Ask with other words, or with fewer of them."),
    text !== "" && h("li", { class: "writes" }, h("a", { href: `#/new?${new URLSearchParams({ text })}` }, "Save what you know about it"), ", so that it is found next time."));

  const form = h("form", { role: "search", onsubmit(event) { event.preventDefault(); answer(); } },
    h("div", { class: "ask" }, input, h("button", { class: "first" }, "Search")), h("div", { class: "narrow" }, narrowed.panel, narrowed.chips));
  mount(title, form, count, found);
  if (!input.value && NAMES.every((name) => !query.get(name))) input.focus({ preventScroll: true });
  await answer();
  return () => { clearTimeout(timer); ending.abort(); };
}

export function onSearchKey(event) {
  const all = [...document.querySelectorAll(".result")].filter((item) => !item.closest("details.others:not([open])"));
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (step && all.length) {
    event.preventDefault();
    all[here]?.classList.remove("here");
    here = Math.max(0, Math.min(all.length - 1, here + step));
    all[here].classList.add("here");
    all[here].querySelector("a").focus({ preventScroll: true });
    all[here].scrollIntoView({ block: "nearest" });
  } else if (event.key === "w") {
    const others = document.querySelector("details.others");
    if (others) others.open = !others.open;
  } else if (event.key === "e" && all[here]) {
    const why = all[here].querySelector("details");
    why.open = !why.open;
  } else if (event.key === "c" && all[here]) all[here].querySelector("button.copy").click();
  else if (event.key === "f") {
    event.preventDefault();
    const panel = document.querySelector(".filters");
    panel.open = !panel.open;
    if (panel.open) panel.querySelector("select, input").focus();
  }
}
