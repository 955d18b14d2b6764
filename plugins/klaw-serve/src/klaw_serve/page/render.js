// A Markdown document as elements, from the tree that the server makes of it. Only what is listed here becomes an element.

import { h, linkTo, searchFor } from "./dom.js";

const PLAIN = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "li", "blockquote", "thead", "tbody", "tr", "em", "strong", "s", "mark", "code", "br", "hr"]);
const OUTSIDE = /^(https?|mailto):/i;
const slug = (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s+/g, "-");

// Returns the elements of the blocks. Those of the lines `from` to `to` are marked, neighbours as one; the first has the id `chunk`.
export function rendered(blocks, path, from, to) {
  const page = { path, from, to, marked: false, names: new Map() };
  const parts = [];
  for (const node of blocks) {
    const marks = within(node, page), made = element(node, page, marks), last = parts.at(-1);
    if (!marks) parts.push(made);
    else if (last?.className === "chunk") last.append(made);
    else { parts.push(h("div", { class: "chunk", id: page.marked ? null : "chunk" }, made)); page.marked = true; }
  }
  return parts;
}

function element(node, page, inside = false) {
  if (typeof node === "string") return node;
  const [tag, given, ...nodes] = node;
  const marks = !inside && within(node, page);
  const made = make(tag, given, nodes.map((each) => (Array.isArray(each) && tag === "properties" ? each : element(each, page, inside || marks))), page);
  if (marks) {
    made.classList.add("chunk");
    if (!page.marked) made.id = "chunk";
    page.marked = true;
  }
  return made;
}

// Whether a block is in the lines to mark, and none of its own blocks says so more precisely.
function within([tag, { lines }, ...nodes], { from, to }) {
  if (!from || !lines || lines[1] < from || lines[0] > to || tag === "thead" || tag === "tbody") return false;
  const covered = lines[0] >= from && lines[1] <= to;
  return covered || !nodes.some((node) => Array.isArray(node) && node[1]?.lines);
}

function make(tag, given, children, page) {
  if (/^h[1-6]$/.test(tag)) return heading(tag, children, page);
  if (PLAIN.has(tag)) return h(tag, {}, ...children);
  if (tag === "ol") return h("ol", { start: given.start }, ...children);
  if (tag === "th" || tag === "td") return h(tag, { class: ["center", "right"].includes(given.align) ? given.align : null, scope: tag === "th" ? "col" : null }, ...children);
  if (tag === "table") return h("div", { class: "wide", role: "region", "aria-label": "Table", tabindex: "0" }, h("table", {}, ...children));
  if (tag === "pre") return h("pre", { tabindex: "0", "data-language": given.language }, h("code", {}, ...children));
  if (tag === "task") return h("span", { class: "task", role: "img", "aria-label": given.done ? "done" : "to do" }, given.done ? "☑" : "☐");
  if (tag === "properties") return h("dl", { class: "properties" }, ...children.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  if (tag === "a") return link(given, children, page);
  if (tag === "image") return image(given.to, children[0], page);
  return h("span", {}, ...children);
}

function heading(tag, children, page) {
  const made = h(tag, {}, ...children), name = slug(made.textContent), count = page.names.get(name) ?? 0;
  page.names.set(name, count + 1);
  made.dataset.heading = count ? `${name}-${count}` : name;
  return made;
}

function link({ to, note }, children, { path }) {
  if (note) return h("a", { href: searchFor(note.replace(/#.*/, "") || note), title: `Search for ${note}` }, ...children);
  if (OUTSIDE.test(to)) return h("a", { href: to, target: "_blank", rel: "noopener noreferrer" }, ...children);
  if (to.startsWith("#")) return h("a", { href: "#main", onclick: (event) => { event.preventDefault(); scrollTo(decoded(to.slice(1))); } }, ...children);
  if (/^[a-z][a-z0-9+.-]*:|^\//i.test(to)) return h("span", { title: to }, ...children);
  return h("a", { href: linkTo(beside(path, to)) }, ...children);
}

// No picture is loaded: one of another server would tell it what is read here.
function image(to, alt, { path }) {
  const text = `Picture: ${alt || to.split("/").pop()}`;
  return OUTSIDE.test(to) ? h("a", { class: "image", href: to, target: "_blank", rel: "noopener noreferrer" }, text) : h("span", { class: "image", title: beside(path, to) }, text);
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function beside(path, to) {
  const parts = path.split("/").slice(0, -1);
  for (const part of decoded(to.replace(/[#?].*$/, "")).split("/")) {
    if (part === "..") parts.pop();
    else if (part && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

function scrollTo(name) {
  const found = [...document.querySelectorAll("[data-heading]")].find((each) => each.dataset.heading === slug(name) || each.dataset.heading === name);
  found?.scrollIntoView({ block: "start" });
}
