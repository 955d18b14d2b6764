// Writing a memory: a new one, or another text for a saved one.

import { api } from "./api.js";
import { attempt, date, h, linkTo, mount, toast } from "./dom.js";

function area(text, label) {
  const made = h("textarea", { rows: 5, required: true, maxlength: 100_000, "aria-label": label, spellcheck: "true" });
  made.value = text;
  return made;
}

function tagsField(tags = []) {
  const made = h("input", { name: "tags", placeholder: "house, energy/heating", autocomplete: "off", value: tags.join(", ") });
  return [h("label", {}, "Tags", made), () => made.value.split(",").map((tag) => tag.trim()).filter(Boolean)];
}

const sendBy = (event, form) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && form.requestSubmit();

export async function compose(query) {
  const text = area("", "Text"), [label, tags] = tagsField(), asked = query.get("text");
  text.placeholder = "A sentence that is clear by itself, for example: The spare key is with Eve, on the second floor.";
  const form = h("form", { class: "editor", onsubmit(event) {
    event.preventDefault();
    attempt(async () => {
      const saved = await api("memories", { method: "POST", body: { text: text.value, tags: tags() } });
      toast(saved.notice || "Saved.");
      location.hash = linkTo(saved.path);
    });
  }, onkeydown: (event) => sendBy(event, form) }, text, label, h("div", { class: "actions" }, h("button", { class: "first" }, "Save"), h("span", { class: "meta" }, "Ctrl + Enter")));
  mount(h("h1", {}, "Save a memory"), asked && h("p", { class: "muted" }, `You asked: ${asked}`), form);
  text.focus();
}

// The form in place of a saved memory. A correction keeps the date; what has changed since is dated today.
export function edit(found, done) {
  const text = area(found.content, "Text of the memory"), [label, tags] = tagsField(found.tags);
  const replace = (created_at) => attempt(async () => {
    if (text.value === found.content && tags().join() === found.tags.join() && !created_at) return done();
    const put = (body) => api("memories", { method: "PUT", body });
    const changed = await put({ path: found.path, text: text.value, tags: tags(), ...(created_at ? { created_at } : {}) });
    const { text: before, created_at: dated, tags: old } = changed.replaced;
    location.hash = linkTo(changed.path);
    toast(changed.notice || "Saved.", async () => { location.hash = linkTo((await put({ path: changed.path, text: before, created_at: dated, tags: old })).path); });
  });
  const form = h("form", { class: "editor", onsubmit(event) { event.preventDefault(); replace(event.submitter?.value === "now" ? new Date().toISOString() : null); }, onkeydown: (event) => sendBy(event, form) },
    text, label, h("div", { class: "actions" }, h("button", { class: "first", value: "" }, "Correct it"), h("button", { value: "now", title: "This is so from today on" }, "Replace it as of today"), h("button", { type: "button", class: "quiet", onclick: done }, "Cancel")),
    h("p", { class: "meta" }, "A correction keeps the date, a replacement is dated today. Searches find the new text only; the old one stays below it."));
  return [form, text];
}

// The versions of a memory that was changed, the newest first; a search finds the first.
export const versions = (all, path) => all.length > 0 && h("section", { class: "versions", "aria-label": "Versions" }, h("h2", {}, "Versions"), h("ol", { class: "timeline" },
  ...[...all].reverse().map((each) => h("li", { class: each.current ? "true" : "ended" }, h("div", { class: "meta" }, date(each.created_at), each.current ? " · current" : "", each.path === path ? " · shown above" : ""),
    h("p", { class: "said" }, each.path === path ? each.text : h("a", { href: linkTo(each.path) }, each.text))))));
