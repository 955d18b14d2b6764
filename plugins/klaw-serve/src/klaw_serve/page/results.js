// The results of a search: what was found, where it is, and what made it rank.

import { bar, copy, date, h, linkTo, plain, stem } from "./dom.js";

const SNIPPET = 300;

export function shown(result, query) {
  const where = linkTo(result.path, result.start_line, result.end_line), place = `${result.path}:${result.start_line}-${result.end_line}`;
  const percent = result.relevance == null ? null : Math.round(result.relevance * 100);
  const [first, ...more] = titles(result);
  return h("li", { class: `result${result.is_weak ? " weak" : ""}`, "data-place": place },
    h("div", { class: "head" }, h("h2", {}, h("a", { href: where }, ...marked(first, query), more.length ? h("span", { class: "inner" }, ...marked(` › ${more.join(" › ")}`, query)) : null)),
      percent != null && h("span", { class: "relevance" }, bar(result.relevance, `relevance ${percent} %`), h("span", { "aria-hidden": "true" }, `${percent} %`))),
    h("p", { class: "snippet" }, ...marked(snippet(result.content, query), query)),
    h("div", { class: "foot meta" }, h("span", { class: "path" }, place), result.about && h("span", {}, result.about), h("span", {}, date(result.created_at)), result.collection !== "memory" && h("span", {}, result.collection),
      result.is_weak && h("span", {}, "weak match"), result.trust === "foreign" && h("span", {}, "foreign"),
      h("button", { class: "quiet copy", "aria-label": `Copy the text of ${place}`, onclick: () => copy(result.content, "Text") }, "Copy"), result.explain.length > 0 && explained(result)));
}

function titles({ origin, path, heading, created_at, chat_id }) {
  if (origin === "saved") return [`Saved on ${date(created_at)}`];
  if (origin === "conversations") return [chat_id ?? "Chat", date(created_at)];
  const name = stem(path), same = heading[0] && heading[0].toLowerCase().replace(/\W+/g, "") === name.toLowerCase().replace(/\W+/g, "");
  return same ? heading : [name, ...heading];
}

function explained(result) {
  const most = Math.max(...result.explain.map((part) => Math.abs(part.value)), 1e-12);
  const rows = result.explain.map((part) => h("tr", {}, h("th", { scope: "row" }, part.component), h("td", {}, part.rank),
    h("td", { class: "raw" }, part.raw.toPrecision(3)), h("td", {}, part.value.toPrecision(3)), h("td", { class: "wide" }, bar(Math.abs(part.value) / most))));
  return h("details", {}, h("summary", {}, "Why"), h("table", { class: "explain" },
    h("thead", {}, h("tr", {}, ...["Retriever", "Rank", "Raw score", "Contribution", "Compared with the largest"].map((title, at) => h("th", { scope: "col", class: ["", "", "raw", "", "wide"][at] }, title)))),
    h("tbody", {}, ...rows)), h("p", {}, `The contributions add up to the score, ${result.score.toPrecision(4)}.`));
}

// Short words of a question are mostly those that every text has.
function words(query) {
  const asked = query.replace(/(?<!\S)-?(tag|path):\S+|(?<!\S)-\S+/gi, ""); // what it is not about, or where it is, is no word of it
  const all = [...new Set(asked.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? [])];
  const long = all.filter((word) => word.length > 3 || /[^\p{Script=Latin}]/u.test(word));
  return long.length ? long : all;
}
const pattern = (query) => {
  const found = words(query).map((word) => (word.length > 4 ? word.slice(0, -1) : word).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return found.length ? new RegExp(`(?<![\\p{L}\\p{N}])(?:${found.join("|")})[\\p{L}\\p{N}]*`, "giu") : null;
};

// The stretch of the text in which the most different words of the question stand.
function snippet(content, query) {
  const text = plain(content.replace(/^(#+ [^\n]*\n+)+/, "").replace(/^#+ /gm, "").replace(/\n(?![\n|>*+-]|\d+\.)(?<!\n\n)/g, " ")).replace(/\n\s*\n+/g, "\n").trim() || content;
  const found = pattern(query);
  if (text.length <= SNIPPET) return text;
  const hits = found ? [...text.matchAll(found)] : [];
  let best = 0, most = -1;
  for (const hit of hits) {
    const within = new Set(hits.filter((other) => other.index >= hit.index && other.index < hit.index + SNIPPET - 60).map((other) => other[0].toLowerCase()));
    if (within.size > most) { most = within.size; best = hit.index; }
  }
  const start = best < 80 ? 0 : text.lastIndexOf(" ", best - 50) + 1;
  const end = text.length <= start + SNIPPET ? text.length : text.lastIndexOf(" ", start + SNIPPET);
  return `${start ? "… " : ""}${text.slice(start, end > start ? end : start + SNIPPET)}${end < text.length ? " …" : ""}`;
}

function marked(text, query) {
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
