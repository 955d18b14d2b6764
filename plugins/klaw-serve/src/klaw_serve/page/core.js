// Core memory: the few facts that every call to a model is given, to read and to change.

import { api } from "./api.js";
import { attempt, h, mount, toast } from "./dom.js";

const READ_ONLY = "readOnly" in document.body.dataset;
const SECTIONS = [["user", "About you"], ["agent", "About the agent"]];
const path = (section, key) => `core/${section}/${encodeURIComponent(key)}`;
const put = (section, key, value) => api(path(section, key), { method: "PUT", body: { value } });

export async function core() {
  const known = await api("core");
  mount(h("h1", {}, "Core memory"), h("p", { class: "muted" }, "What every prompt of an agent begins with.", h("span", { class: "writes" }, " A change is saved when you leave the field or press Enter.")),
    ...SECTIONS.flatMap(([section, title]) => [h("h2", {}, title), h("ul", { class: "rows" },
      ...Object.entries(known[section]).map(([key, value]) => row(section, key, value)), addition(section))]));
}

function row(section, key, value) {
  const input = h("input", { value, "aria-label": key, readonly: READ_ONLY, onkeydown: (event) => event.key === "Enter" && input.blur(), async onchange() {
    const before = value;
    await attempt(async () => {
      await put(section, key, input.value);
      value = input.value;
      toast(`${key} saved.`, async () => { await put(section, key, before); core(); });
    });
  } });
  const remove = () => attempt(async () => {
    await api(path(section, key), { method: "DELETE" });
    await core();
    toast(`${key} deleted.`, async () => { await put(section, key, value); await core(); });
  });
  return h("li", { class: "pair" }, h("span", { class: "name" }, key), input, h("button", { class: "quiet danger writes", "aria-label": `Delete ${key}`, onclick: remove }, "Delete"));
}

function addition(section) {
  const key = h("input", { placeholder: "key", "aria-label": `New key about the ${section}`, required: true, maxlength: 200 });
  const value = h("input", { placeholder: "value", "aria-label": `New value about the ${section}`, required: true });
  return h("li", { class: "writes" }, h("form", { class: "pair", onsubmit(event) {
    event.preventDefault();
    attempt(async () => { await put(section, key.value.trim(), value.value); await core(); });
  } }, key, value, h("button", {}, "Add")));
}
