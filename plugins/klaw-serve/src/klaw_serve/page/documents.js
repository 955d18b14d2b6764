// Documents: the newest of them, and one of them with a chunk in its place.

import { api } from "./api.js";
import { attempt, date, h, linkTo, mount, plural, toast } from "./dom.js";

export async function recent() {
  const { documents } = await api("recent", { query: { limit: 50 } });
  mount(h("h1", {}, "Recent"), documents.length ? h("ul", { class: "rows" }, ...documents.map((each) => h("li", {},
    h("a", { class: "row", href: linkTo(each.path) }, h("div", { class: "head" }, h("span", { class: "name" }, each.origin === "saved" || each.origin === "facts" ? each.preview : each.title || each.path.split("/").pop()),
      h("span", { class: "meta" }, date(each.created_at))), each.origin !== "saved" && each.origin !== "facts" && h("div", { class: "meta" }, each.preview), h("div", { class: "meta path" }, each.path)))))
    : h("p", { class: "empty" }, "Nothing is indexed yet: ", h("code", {}, "klaw index DIR")));
}

export async function document_(query) {
  const path = query.get("path") ?? "", from = +query.get("from"), to = +query.get("to");
  const found = await api("document", { query: { path } });
  const lines = found.content.replace(/\n$/, "").split("\n");
  const rows = lines.map((line, at) => {
    const n = found.start_line + at;
    return h("div", { class: n >= from && n <= to ? "chunk" : null, id: n === from ? "chunk" : null }, h("span", { class: "n" }, n), h("span", { class: "t" }, line));
  });
  mount(h("div", { class: "crumbs" }, h("h1", { class: "path" }, found.path), h("div", { class: "actions" },
    h("span", { class: "meta" }, plural(lines.length, "line"), found.file || found.notice ? "" : " · saved"),
    h("button", { class: "danger", onclick: () => attempt(() => forget(found)) }, "Forget"))),
    found.notice && h("p", { class: "meta", role: "note" }, found.notice),
    h("div", { class: "document", role: "region", "aria-label": "Text", tabindex: "0" }, ...rows));
  document.getElementById("chunk")?.scrollIntoView({ block: "center" });
}

async function forget(found) {
  await api("document", { method: "DELETE", query: { path: found.path } });
  const undo = found.file || found.notice
    ? () => api("restore", { method: "POST", body: { path: found.path } })
    : () => api("memories", { method: "POST", body: { text: found.content } });
  history.length > 1 ? history.back() : (location.hash = "#/search");
  toast(`Forgotten: ${found.path}`, async () => { await undo(); toast("Restored."); });
}
