// Documents: the newest of them, and one of them to read, with a chunk in its place.

import { api } from "./api.js";
import { attempt, command, copy, date, h, linkTo, mount, nothing, plain, plural, searchFor, stem, toast } from "./dom.js";
import { edit, versions } from "./editor.js";
import { rendered } from "./render.js";

const KINDS = { saved: "saved", facts: "fact", conversations: "chat" };
const encoded = (file) => file.replace(/\\/g, "/").replace(/^(?!\/)/, "/").split("/").map(encodeURIComponent).join("/");
const EDITORS = {
  "VS Code": (file, line) => `vscode://file${encoded(file)}:${line}`, Cursor: (file, line) => `cursor://file${encoded(file)}:${line}`,
  Zed: (file, line) => `zed://file${encoded(file)}:${line}`, Obsidian: (file) => `obsidian://open?path=${encodeURIComponent(file)}`,
};
const CHOICE = "klaw-editor", LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/;

const TABLE = /\|.*\|[ :]*-{3,}.*/; // in a preview, which is one line

export function row({ origin, title, path, preview, created_at }) {
  const own = origin === "saved" || origin === "facts", words = plain(preview).replace(TABLE, (rows) => `${rows} `.replace(/\|[ :|-]*-[ :|-]*\|/g, "|").replace(/[ |]*\|[ |]*/g, " · "));
  return h("li", {}, h("a", { class: "row", href: linkTo(path) }, h("div", { class: "head" }, h("span", { class: "name" }, own ? words : title || stem(path)), h("span", { class: "meta" }, date(created_at))),
    !own && h("div", { class: "meta preview" }, words), h("div", { class: "meta" }, KINDS[origin] ?? h("span", { class: "path" }, path))));
}

export async function recent() {
  const { documents } = await api("recent", { query: { limit: 50 } });
  mount(h("h1", {}, "Recent"), documents.length ? h("ul", { class: "rows" }, ...documents.map((each) => row(each)))
    : nothing("Nothing is indexed yet", h("p", {}, "Notes, saved memories and chats appear here, the newest first."), command("klaw index ~/notes"), h("p", { class: "writes" }, h("a", { href: "#/new" }, "or save a memory"))));
}

export async function document_(query) {
  const path = query.get("path") ?? "", from = +query.get("from"), to = +query.get("to") || from;
  const found = await api("rendered", { query: { path } }).catch((error) => { if (error.status !== 404) throw error; return missing(path, error); });
  if (!found) return;
  const isSaved = found.path.startsWith("saved/"), isCurrent = !found.versions.some((each) => each.path === found.path && !each.current), lines = found.content.replace(/\n$/, "").split("\n");
  const blocks = found.blocks, top = blocks?.find((block) => block[0] !== "properties"), isTitled = !isSaved && top?.[0] === "h1";
  const title = isTitled ? rendered([top], found.path)[0].childNodes : [isSaved ? `Saved${found.created_at ? ` on ${date(found.created_at)}` : ""}` : stem(found.path)];
  const body = h("div", { class: "body" }), linked = h("div", { class: "links" });
  const shows = { source: () => source(lines, found.start_line, from, to), read: () => h("article", { class: "text" }, ...rendered(isTitled ? blocks.filter((block) => block !== top) : blocks, found.path, from, to)) };
  const toggle = h("button", { "data-key": "s", onclick: () => show(body.dataset.shows === "source" ? "read" : "source") });
  const change = isSaved && isCurrent && h("button", { class: "writes", "data-key": "e", onclick: () => {
    const [form, text] = edit(found, () => show("read"));
    body.replaceChildren(form);
    text.focus();
  } }, "Edit");
  function show(what) {
    body.dataset.shows = what;
    toggle.textContent = what === "source" ? "Read" : "Source";
    body.replaceChildren(shows[what]());
  }
  mount(h("div", { class: "crumbs" }, h("span", { class: "path" }, found.path), h("span", { class: "meta" }, [date(found.created_at), plural(lines.length, "line")].filter(Boolean).join(" · "))),
    h("h1", {}, ...title), found.tags.length > 0 && h("p", { class: "chips" }, ...found.tags.map((tag) => h("a", { class: "chip", href: searchFor(`tag:${tag}`) }, tag))),
    h("div", { class: "actions" }, blocks && toggle, h("button", { "data-key": "c", onclick: () => copy(found.content, "Text") }, "Copy"), change, found.file && opener(found.file, from || 1),
      h("button", { class: "danger writes", onclick: () => attempt(() => forget(found)) }, "Forget")),
    found.notice && h("p", { class: "meta", role: "note" }, found.notice), !isCurrent && h("p", { class: "note", role: "note" }, "A newer version replaces this text."), body, versions(found.versions, found.path), linked);
  api("links", { query: { path: found.path } }).then((links) => linked.replaceChildren(...linksOf(links).filter(Boolean))).catch(() => {});
  show(blocks ? "read" : "source");
  window.scrollTo(0, 0);
  const chunk = document.getElementById("chunk");
  if (chunk?.getBoundingClientRect().bottom > window.innerHeight) chunk.scrollIntoView({ block: "center" });
}

// What a note links to, and what links to it: each document once.
function linksOf({ to, backlinks, broken }) {
  const list = (title, items) => items.length > 0 && h("section", {}, h("h2", {}, title), h("ul", { class: "rows" }, ...items.map((item) => h("li", {}, item))));
  const each = (edges, key) => [...new Map(edges.map((edge) => [edge[key], edge])).values()];
  return [list("Links to", each(to, "target").map((edge) => h("a", { class: "path", href: linkTo(edge.target) }, edge.target))),
    list("Linked from", each(backlinks, "path").map((edge) => h("a", { class: "path", href: linkTo(edge.path, edge.line, edge.line) }, edge.path))),
    list("Broken links", broken.map((link) => h("span", { class: "meta" }, `${link.target}: ${link.reason}`)))];
}

function source(lines, first, from, to) {
  const rows = lines.map((line, at) => {
    const n = first + at;
    return h("div", { class: n >= from && n <= to ? "chunk" : null, id: n === from ? "chunk" : null }, h("span", { class: "n" }, n), h("span", { class: "t" }, line));
  });
  return h("div", { class: "document", role: "region", "aria-label": "Text", tabindex: "0" }, ...rows);
}

// A page opens a program by its kind of address, if the file is on this machine; elsewhere its path can be copied.
function opener(file, line) {
  const path = h("button", { onclick: () => copy(file, "Path") }, "Copy the path");
  if (!LOCAL.test(location.hostname)) return path;
  const open = h("a", { class: "button", "data-key": "o" }), choice = h("select", { "aria-label": "Editor", onchange: () => { localStorage.setItem(CHOICE, choice.value); aim(); } },
    ...Object.keys(EDITORS).map((name) => h("option", { selected: name === localStorage.getItem(CHOICE) }, name)));
  function aim() {
    open.textContent = `Open in ${choice.value}`;
    open.href = EDITORS[choice.value](file, line);
  }
  aim();
  return [open, h("details", { class: "more" }, h("summary", { "aria-label": "More ways to open it" }, "…"), h("div", {}, h("label", {}, "Editor", choice), path))];
}

function missing(path, error) {
  mount(h("h1", {}, "Not in memory"), h("p", { class: "path" }, path), h("p", {}, error.message, error.hint ? `; ${error.hint}` : ""),
    h("p", {}, h("a", { href: searchFor(stem(path).replace(/[_-]+/g, " ")) }, "Search for it"), " or ", h("a", { href: "#/recent" }, "see what came last"), "."));
}

async function forget(found) {
  await api("document", { method: "DELETE", query: { path: found.path } });
  const undo = found.file || found.notice
    ? () => api("restore", { method: "POST", body: { path: found.path } })
    : () => api("memories", { method: "POST", body: { text: found.content } });
  history.length > 1 ? history.back() : (location.hash = "#/search");
  toast(`Forgotten: ${found.path}`, async () => { await undo(); toast("Restored."); });
}

// Every action has one key, which its button names.
export function onDocumentKey(event) {
  const button = [...document.querySelectorAll("#main [data-key]")].find((each) => each.dataset.key === event.key);
  if (!button || ("readOnly" in document.body.dataset && button.classList.contains("writes"))) return;
  event.preventDefault();
  button.click();
}
