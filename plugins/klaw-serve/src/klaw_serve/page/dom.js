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

// The beginning of a day in UTC is that of a note or a fact of that day, which is the same day everywhere; anything else has the day of the reader's clock.
export function date(text) {
  if (!text) return "";
  const moment = new Date(text), timeZone = moment % 86_400_000 === 0 ? "UTC" : undefined;
  return moment.toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric", timeZone });
}
export const time = (text) => new Date(text).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
export const number = (value) => value.toLocaleString();
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
export const stem = (path) => path.split("/").pop().replace(/\.(md|markdown|mdx|qmd|Rmd|txt|jsonl)$/i, "");
const hash = (view, given) => `#/${view}?${new URLSearchParams(given)}`;

// Where a document is shown: a day of a chat and a fact have views of their own.
export function linkTo(path, from, to) {
  const [, chat, day] = path.match(/^conversations\/([^/]+)\/(\d{4}-\d\d-\d\d)\.jsonl$/) ?? [];
  const lines = from ? { from, to } : {};
  if (chat) return hash("chat", { name: chat, day, ...lines });
  const [, fact] = path.match(/^facts\/(f-[a-z0-9]+)$/) ?? [];
  return fact ? hash("fact", { id: fact }) : hash("document", { path, ...lines });
}
export const searchFor = (q, more = {}) => hash("search", { q, ...more });

export async function copy(text, what) {
  await attempt(async () => {
    try { await navigator.clipboard.writeText(text); } catch { throw new Error("The browser does not allow copying here."); }
    toast(`${what} copied.`);
  });
}

// A command to type in a terminal, with a button that copies it.
export const command = (text) => h("span", { class: "command" }, h("code", {}, text), h("button", { class: "quiet", "aria-label": `Copy ${text}`, onclick: () => copy(text, "Command") }, "Copy"));

// What a view shows if it has nothing else: what that means, and what to do next.
export const nothing = (title, ...next) => h("div", { class: "empty" }, h("h2", {}, title), ...next);

// A part of a Markdown text as a line of words, without the marks.
export const plain = (text) => text
  .replace(/```+[^\n`]*\n?|~~~+[^\n]*\n?/g, "").replace(/!?\[\[([^\]|\n]+\|)?([^\]\n]+)\]\]/g, "$2").replace(/!?\[([^\]\n]*)\]\([^)\s]*\)/g, "$1")
  .replace(/(\*\*|==|~~)(?=\S)([^\n]*?\S)\1/g, "$2").replace(/`([^`\n]+)`/g, "$1").replace(/^(\s*)[-*+] \[ \] /gm, "$1☐ ").replace(/^(\s*)[-*+] \[[xX]\] /gm, "$1☑ ")
  .replace(/^(\s*)[*+-] /gm, "$1• ").replace(/^\|?[ \t:|-]+\|[ \t:|-]*$/gm, "").replace(/^[ \t]*\|[ \t]*(.*?)[ \t]*\|?[ \t]*$/gm, (_, cells) => cells.replace(/[ \t]*\|[ \t]*/g, " · ")).replace(/^(> ?)+(\[!\w+\][+-]? ?)?/gm, "").replace(/<!--.*?-->/g, "");
