// Making elements, and what all views share.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

export function mount(...children) {
  const main = document.getElementById("main");
  main.replaceChildren(...children.flat().filter(Boolean));
  const title = main.querySelector("h1")?.textContent;
  document.title = title ? `${title} · Klaw` : "Klaw";
}

export function toast(text, undo) {
  const box = h("div", { class: "toast" }, h("span", {}, text));
  const gone = setTimeout(() => box.remove(), undo ? 12_000 : 5_000);
  if (undo) {
    box.append(h("button", { async onclick() { clearTimeout(gone); box.remove(); await attempt(undo); } }, "Undo"));
  }
  document.getElementById("toasts").append(box);
}

export async function attempt(work) {
  try { return await work(); } catch (error) { toast([error.message, error.hint].filter(Boolean).join(" — ")); }
}

export function bar(share, label) {
  const fill = h("i");
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: "bar", ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) }, fill);
}

export const date = (text) => (text ? new Date(text).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" }) : "");
export const time = (text) => new Date(text).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
export const number = (value) => value.toLocaleString();
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
export const linkTo = (path, from, to) => `#/document?${new URLSearchParams({ path, ...(from ? { from, to } : {}) })}`;
