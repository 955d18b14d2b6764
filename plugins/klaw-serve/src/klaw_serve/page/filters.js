// What narrows a search: the fields of the panel, and each set filter as a button that removes it.

import { api } from "./api.js";
import { attempt, h } from "./dom.js";

const TITLES = { mode: "Search by", collection: "Collection", path: "Path starts with", source: "Source", tag: "Tag", where: "Metadata", since: "From", until: "Until" };
const MODES = [["", "Words, meaning"], ["fts", "Words"], ["vector", "Meaning"]];
export const NAMES = Object.keys(TITLES);

// Returns the panel, the set filters, and functions: `given` is what the search is asked, `set` changes some.
export function filters(query, changed) {
  const choice = (name, options) => h("select", { name }, ...options.map(([value, text]) => h("option", { value, selected: query.get(name) === value }, text)));
  const text = (name, placeholder, type = "text") => h("input", { name, type, placeholder, autocomplete: "off", value: query.get(name) ?? "" });
  const fields = {
    mode: choice("mode", MODES),
    collection: choice("collection", [["", "all"], ...(query.get("collection") ? [[query.get("collection"), query.get("collection")]] : [])]),
    path: text("path", "notes/2026/"), source: text("source", "MEMORY.md"), tag: text("tag", "work"), where: text("where", "year>=2025; status=open"),
    since: text("since", "", "date"), until: text("until", "", "date"),
  };
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Set filters" });
  const values = () => Object.fromEntries(NAMES.map((name) => [name, fields[name].value.trim()]).filter(([, value]) => value));
  function update() {
    chips.replaceChildren(...Object.entries(values()).map(([name, value]) => h("button", { type: "button", class: "chip", "aria-label": `Remove the filter ${TITLES[name]}: ${value}`, onclick: () => set({ [name]: "" }) },
      `${TITLES[name]}: ${MODES.find(([mode]) => name === "mode" && mode === value)?.[1] ?? value}`, h("span", { "aria-hidden": "true" }, "×"))));
  }
  function set(wanted) {
    for (const [name, value] of Object.entries(wanted)) fields[name].value = value;
    update();
    changed();
  }
  for (const field of Object.values(fields)) field.addEventListener(field.type === "text" ? "input" : "change", () => { update(); changed(); });
  update();
  attempt(async () => { // the box for the question does not wait for this
    const { collections, searched } = await api("collections"), others = collections.filter((name) => name !== fields.collection.value && (name !== "memory" || searched.length > 1));
    fields.collection.options[0].textContent = searched.length > 1 ? `all (${searched.join(", ")})` : "memory";
    fields.collection.append(...others.map((name) => h("option", { value: name }, name)));
  });
  const panel = h("details", { class: "filters" }, h("summary", {}, "Filters"), h("div", {}, ...NAMES.map((name) => h("label", {}, TITLES[name], fields[name]))));
  return { panel, chips, values, set, given, clear: () => set(Object.fromEntries(NAMES.map((name) => [name, ""]))) };

  function given() {
    const { tag, where, ...others } = values();
    const conditions = [...(tag ? tag.split(/[\s,]+/).filter(Boolean).map((each) => `tags=${each.replace(/^#/, "")}`) : []), ...(where ? where.split(";").map((each) => each.trim()).filter(Boolean) : [])];
    return { ...others, where: conditions };
  }
}
