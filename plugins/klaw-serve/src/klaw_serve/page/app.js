// The page: a router over the hash, one function a view. Everything that a memory holds becomes text nodes, never HTML.

import { api, ApiError, leaveView, setToken, token } from "./api.js";
import { command, h, mount, toast } from "./dom.js";
import { search, onSearchKey } from "./search.js";
import { document_, onDocumentKey, recent } from "./documents.js";
import { compose } from "./editor.js";
import { chats, chat } from "./chats.js";
import { facts, fact } from "./facts.js";
import { core } from "./core.js";
import { status } from "./status.js";

const VIEWS = [
  ["search", "Search", search], ["recent", "Recent", recent], ["chats", "Chats", chats],
  ["facts", "Facts", facts], ["core", "Core", core], ["status", "Status", status],
];
const OTHERS = { document: [document_, "search"], chat: [chat, "chats"], fact: [fact, "facts"], new: [compose, "search"] };
const KEYS = { search: onSearchKey, document: onDocumentKey };
let leave = () => {};
const scrolled = new Map(); // how far a list was scrolled when it was left
let last = "";

function place() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  return [name || "search", new URLSearchParams(query)];
}

async function show() {
  const [name, query] = place();
  const view = VIEWS.find(([each]) => each === name)?.[2] ?? OTHERS[name]?.[0] ?? search;
  for (const link of document.querySelectorAll("#views a")) {
    const current = link.dataset.view === (OTHERS[name]?.[1] ?? name);
    current ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  scrolled.set(last, window.scrollY);
  last = location.hash;
  leave();
  leave = () => {};
  leaveView();
  try {
    const end = await view(query);
    leave = end ?? (() => {});
    if (document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true }); // a reader begins there
    if (!OTHERS[name]) window.scrollTo(0, scrolled.get(last) ?? 0);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return askToken(Boolean(token()));
    mount(h("h1", {}, "Error"), h("p", { class: "problem" }, h("strong", {}, error.message), " ", error.hint ?? ""));
  }
}

// `wrong`: a token was given, and the server has refused it.
function askToken(wrong = false) {
  const agent = nameOfAgent(), input = h("input", { type: "password", id: "token", required: true, autocomplete: "off", "aria-label": "Token", "aria-invalid": wrong, "aria-describedby": wrong ? "wrong" : null });
  const form = h("form", {
    onsubmit(event) { event.preventDefault(); setToken(input.value.trim()); start(); },
  }, input, h("button", { class: "first" }, "Open"));
  document.getElementById("views").replaceChildren();
  mount(h("div", { class: "token" }, h("h1", {}, wrong ? "This token is wrong" : "Enter the token"),
    wrong && h("p", { class: "problem", id: "wrong", role: "alert" }, h("strong", {}, "The server does not accept the token that was given."), " It may be that of another data directory, or the token was changed."),
    h("p", { class: "muted" }, "To print the token of this memory", agent ? ", or the owner's, which opens all" : "", ":"), command("klaw serve token"), form));
  input.focus();
}

const nameOfAgent = () => decodeURIComponent(location.pathname.match(/^\/agents\/([^/]+)\//)?.[1] ?? "");

async function start() {
  const agent = nameOfAgent();
  document.getElementById("agent").textContent = agent ? `· ${agent}` : "";
  const given = location.hash.match(/^#token=(.+)$/)?.[1];
  if (given) { setToken(decodeURIComponent(given)); history.replaceState(null, "", "#/search"); }
  if (!token()) return askToken();
  try {
    const has = await api("extensions", { ofView: false });
    const nav = document.getElementById("views");
    nav.replaceChildren(...VIEWS.filter(([name]) => name !== "facts" || has.facts)
      .map(([name, title]) => h("a", { href: `#/${name}`, "data-view": name }, title)));
  } catch (error) {
    if (error.status === 401) return askToken(Boolean(token()));
    toast(error.message);
  }
  show();
}

const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === "Escape") {
    const menu = event.target.closest("details.more[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
    else if (typing) typing.blur();
    else if (OTHERS[place()[0]]) history.back();
    return;
  }
  if (typing && !(typing.type === "search" && ["ArrowDown", "ArrowUp"].includes(event.key))) return;
  if (event.key === "/") { event.preventDefault(); location.hash.startsWith("#/search") ? document.getElementById("query")?.focus() : (location.hash = "#/search"); }
  else if (event.key === "?") help.showModal();
  else if (/^[1-6]$/.test(event.key)) document.querySelectorAll("#views a")[event.key - 1]?.click();
  else if (event.key === "n" && !("readOnly" in document.body.dataset)) { event.preventDefault(); location.hash = "#/new"; }
  else KEYS[place()[0]]?.(event);
});
window.addEventListener("hashchange", () => (location.hash.startsWith("#token=") ? start() : location.hash === "#main" ? null : show()));
start();
