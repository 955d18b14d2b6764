// Search: a question, filters, and results with what made them rank.

import { api } from "./api.js";
import { bar, date, h, linkTo, mount, plural } from "./dom.js";

const FILTERS = ["mode", "collection", "path", "source", "since", "until"];
const SNIPPET = 340;
let here = -1;

export async function search(query) {
  const asked = query.get("q") ?? "";
  const input = h("input", { id: "query", type: "search", value: asked, placeholder: "Question or keywords", "aria-label": "Question", autocomplete: "off", enterkeyhint: "search" });
  const filters = await filterFields(query);
  const open = FILTERS.some((name) => query.get(name));
  const count = h("p", { class: "count", role: "status" });
  const results = h("ol", { class: "results", id: "results" });
  const weak = h("details", { class: "others", hidden: true });
  const form = h("form", { role: "search", onsubmit(event) {
    event.preventDefault();
    const next = new URLSearchParams({ q: input.value });
    for (const [name, field] of Object.entries(filters.fields)) if (field.value) next.set(name, field.value);
    const hash = `#/search?${next}`;
    location.hash === hash ? answer() : (location.hash = hash);
  } },
    h("div", { class: "ask" }, input, h("button", { class: "first" }, "Search")),
    h("details", { class: "filters", open }, h("summary", {}, "Filters"), h("div", {}, ...filters.labels)));
  mount(h("h1", { class: "skip" }, asked ? `“${asked}”` : "Search"), form, count, results, weak);
  here = -1;
  const answer = async () => {
    if (!asked.trim()) { results.replaceChildren(h("li", { class: "empty" }, "Type a question. Klaw searches notes, conversations and saved memories by words and by meaning.")); return; }
    count.textContent = "Searching …";
    const given = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]));
    const found = await api("search", { query: { query: asked, limit: 20, ...given } });
    const good = found.results.filter((result) => !result.is_weak), others = found.results.filter((result) => result.is_weak);
    // Of results that are all weak, a notice says so.
    const counted = good.length ? [plural(good.length, "result")] : others.length ? [] : ["Nothing found."];
    count.textContent = [...counted, ...found.notices].join(" · ");
    results.replaceChildren(...good.map((result) => shown(result, asked)));
    weak.hidden = !others.length;
    weak.open = !good.length;
    weak.replaceChildren(h("summary", {}, plural(others.length, "weak match", "weak matches")),
      h("ol", { class: "results" }, ...others.map((result) => shown(result, asked))));
  };
  if (!asked) input.focus();
  await answer();
}

async function filterFields(query) {
  const { collections, searched } = await api("collections");
  const choice = (name, options) => h("select", { name }, ...options.map(([value, text]) => h("option", { value, selected: query.get(name) === value }, text)));
  const text = (name, type, placeholder) => h("input", { name, type, placeholder, value: query.get(name) ?? "" });
  const fields = {
    mode: choice("mode", [["", "Words and meaning"], ["fts", "Words"], ["vector", "Meaning"]]),
    collection: choice("collection", [["", searched.length > 1 ? `all (${searched.join(", ")})` : "memory"], ...collections.filter((name) => name !== "memory" || searched.length > 1).map((name) => [name, name])]),
    path: text("path", "text", "notes/2026/"), source: text("source", "text", "MEMORY.md"),
    since: text("since", "date"), until: text("until", "date"),
  };
  const titles = { mode: "Search by", collection: "Collection", path: "Path starts with", source: "Source", since: "From", until: "Until" };
  return { fields, labels: Object.entries(fields).map(([name, field]) => h("label", {}, titles[name], field)) };
}

function shown(result, query) {
  const where = linkTo(result.path, result.start_line, result.end_line);
  const heading = result.heading.length ? result.heading.join(" › ") : result.path.split("/").pop();
  const percent = result.relevance == null ? null : Math.round(result.relevance * 100);
  return h("li", { class: `result${result.is_weak ? " weak" : ""}` },
    h("div", { class: "head" }, h("h2", {}, h("a", { href: where }, heading)),
      percent != null && h("span", { class: "relevance" }, bar(result.relevance, `relevance ${percent} %`), h("span", { "aria-hidden": "true" }, `${percent} %`))),
    h("p", { class: "snippet" }, ...marked(snippet(result.content, query), query)),
    h("div", { class: "foot meta" }, h("span", { class: "path" }, `${result.path}:${result.start_line}–${result.end_line}`),
      h("span", {}, date(result.created_at)), result.collection !== "memory" && h("span", {}, result.collection),
      result.is_weak && h("span", {}, "weak match"), explained(result)));
}

function explained(result) {
  const most = Math.max(...result.explain.map((part) => Math.abs(part.value)), 1e-12);
  const rows = result.explain.map((part) => h("tr", {}, h("th", { scope: "row" }, part.component), h("td", {}, part.rank),
    h("td", { class: "raw" }, part.raw.toPrecision(3)), h("td", {}, part.value.toPrecision(3)), h("td", { class: "wide" }, bar(Math.abs(part.value) / most))));
  return h("details", {}, h("summary", {}, "Why"), h("table", { class: "explain" },
    h("thead", {}, h("tr", {}, ...["Retriever", "Rank", "Raw score", "Contribution", "Share"].map((title, at) => h("th", { scope: "col", class: at === 2 ? "raw" : null }, title)))),
    h("tbody", {}, ...rows)), h("p", {}, `The contributions add up to the score, ${result.score.toPrecision(4)}.`));
}

// Short words of a question are mostly those that every text has.
function words(query) {
  const all = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? [])];
  const long = all.filter((word) => word.length > 3 || /[^\p{Script=Latin}]/u.test(word));
  return long.length ? long : all;
}
const pattern = (query) => {
  const found = words(query).map((word) => (word.length > 4 ? word.slice(0, -1) : word).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return found.length ? new RegExp(`(?<![\\p{L}\\p{N}])(?:${found.join("|")})[\\p{L}\\p{N}]*`, "giu") : null;
};

// The stretch of the text in which the most different words of the question stand.
function snippet(content, query) {
  const text = content.replace(/^(#+ [^\n]*\n+)+/, "").replace(/^#+ /gm, "").replace(/\n(?![\n|>*+-]|\d+\.)(?<!\n\n)/g, " ").replace(/\n{2,}/g, "\n").trim() || content;
  const found = pattern(query);
  if (text.length <= SNIPPET || !found) return text.slice(0, SNIPPET);
  const hits = [...text.matchAll(found)];
  let best = 0, most = -1;
  for (const hit of hits) {
    const within = new Set(hits.filter((other) => other.index >= hit.index && other.index < hit.index + SNIPPET - 60).map((other) => other[0].toLowerCase()));
    if (within.size > most) { most = within.size; best = hit.index; }
  }
  const start = best < 80 ? 0 : text.lastIndexOf(" ", best - 50) + 1;
  const end = text.length <= start + SNIPPET ? text.length : text.lastIndexOf(" ", start + SNIPPET);
  return `${start ? "… " : ""}${text.slice(start, end > start ? end : start + SNIPPET)}${end < text.length ? " …" : ""}`;
}

export function marked(text, query) {
  const found = pattern(query);
  if (!found) return [text];
  const parts = [];
  let at = 0;
  for (const hit of text.matchAll(found)) {
    parts.push(text.slice(at, hit.index), h("mark", {}, hit[0]));
    at = hit.index + hit[0].length;
  }
  return [...parts, text.slice(at)];
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
  } else if (event.key === "e" && all[here]) {
    const why = all[here].querySelector("details");
    why.open = !why.open;
  }
}
