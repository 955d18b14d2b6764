// The page of klaw serve, its own scripts, a real server, and jsdom in place of a browser: test_scripts.py starts it.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const { url, token, page, modules } = JSON.parse(process.env.KLAW_PAGE);
const { JSDOM } = createRequire(`${modules}/`)("jsdom");
const VIEWS = JSON.parse(readFileSync(new URL("views.json", import.meta.url), "utf-8"));
const SCRIPTS = readdirSync(page).filter((name) => name.endsWith(".js"));
const LIMIT = { timeout: 300_000 }; // milliseconds: a busy machine may take minutes
const { window } = new JSDOM(readFileSync(`${page}/index.html`, "utf-8"), { url: `${url}#token=${token}` });
const { document, location } = window;
const { fetch, setTimeout } = globalThis;
const awake = setInterval(() => {}, 1000); // Node would end a test that waits for nothing but a timer of the page

before(async () => {
  window.Element.prototype.scrollIntoView = window.scrollTo = () => {}; // jsdom has no layout
  Object.assign(globalThis, { window, document, location, history: window.history, sessionStorage: window.sessionStorage, localStorage: window.localStorage });
  globalThis.fetch = (path, options) => fetch(new URL(path, location), options);
  globalThis.setTimeout = (...given) => setTimeout(...given).unref(); // a message that stays for seconds keeps nothing up
  for (const name of SCRIPTS) await import(pathToFileURL(`${page}/${name}`));
  await shown("#views a");
});

after(() => {
  location.hash = "#/search"; // leaves the view that listens to the server
  clearInterval(awake);
});

// Resolves to what a selector finds, as soon as it does and it has the text.
function shown(selector, text = "") {
  return new Promise((resolve) => {
    const look = () => {
      const found = [...document.querySelectorAll(selector)].find((each) => each.textContent.includes(text));
      if (found) { observer.disconnect(); resolve(found); }
    };
    const observer = new window.MutationObserver(look);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    look();
  });
}

function go(hash) {
  document.getElementById("main").replaceChildren(); // what was shown before is not what is waited for
  if (location.hash === hash) window.dispatchEvent(new window.Event("hashchange"));
  else location.hash = hash;
}

function type(field, text) {
  field.value = text;
  field.dispatchEvent(new window.Event("input", { bubbles: true }));
}

const press = (key) => (document.activeElement ?? document.body).dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true }));

test("the page loads a script of its own", () => {
  assert.match(document.querySelector("script[type=module]").src, new RegExp(`page/(${SCRIPTS.join("|")})$`));
});

for (const [hash, selector] of Object.entries(VIEWS)) {
  test(`${hash} shows ${selector}`, LIMIT, async () => {
    go(hash);
    assert.ok(await shown(selector));
  });
}

test("a search is asked for by its form, and explained by a key", LIMIT, async () => {
  go("#/search");
  (await shown("#query")).value = "kiln degrees";
  document.querySelector("form[role=search] button").click();
  assert.match((await shown(".result mark")).textContent, /kiln|degrees/i);
  document.activeElement.blur();
  press("j");
  press("e");
  assert.ok(document.querySelector(".result.here details").open);
  assert.ok(document.querySelector(".result.here .explain tbody tr"));
});

test("a view that was left does not replace another", LIMIT, async () => {
  let answer, asked;
  const held = new Promise((resolve) => (answer = resolve));
  const asks = new Promise((resolve) => (asked = resolve));
  const real = globalThis.fetch;
  globalThis.fetch = async (...given) => { const found = await real(...given); asked(); await held; return found; };
  go("#/recent");
  await asks;
  globalThis.fetch = real;
  go("#/core");
  await shown(".pair input");
  answer();
  await (await fetch(url)).text();
  assert.ok(document.querySelector(".pair input"));
});

test("a script in a note is text", LIMIT, async () => {
  go("#/document?path=notes/script.md");
  assert.match((await shown("article")).textContent, /<script>.*onerror/s);
  assert.equal(document.querySelectorAll("main script, main img").length, 0);
});

test("results come while a question is typed, and none of them late", LIMIT, async () => {
  go("#/search");
  const field = await shown("#query"), real = globalThis.fetch;
  let answer, asked;
  const held = new Promise((resolve) => (answer = resolve)), asks = new Promise((resolve) => (asked = resolve));
  globalThis.fetch = async (...given) => { const found = await real(...given); if (String(given[0]).includes("zebra")) { asked(); await held; } return found; };
  type(field, "zebra");
  await asks;
  globalThis.fetch = real;
  type(field, "kiln");
  assert.ok(await shown(".result mark", "Kiln"));
  answer();
  await (await fetch(url)).text();
  assert.match(location.hash, /q=kiln$/);
  assert.doesNotMatch(document.querySelector("#results").textContent, /zebra/i);
});

test("a filter is removed by its button", LIMIT, async () => {
  go("#/search?q=qqzxv&path=notes/");
  (await shown(".none button", "Search without filters")).click();
  assert.equal(document.querySelectorAll(".chip").length, 0);
});

test("a document is shown as text to read, or as its source", LIMIT, async () => {
  go("#/document?path=notes/pump.md");
  const article = await shown("article");
  for (const selector of ["table td", "pre code", ".task", "blockquote strong"]) assert.ok(article.querySelector(selector), selector);
  assert.match(article.querySelector("a[rel]").getAttribute("rel"), /noopener/);
  assert.match([...article.querySelectorAll("a")].find((link) => link.textContent === "the boat").href, /path=notes%2Fboat.md/);
  press("s");
  assert.ok(await shown(".document .t", "| Nordic | 34 dB |"));
});

test("a memory is saved and corrected, and the old text brought back", LIMIT, async () => {
  go("#/new");
  (await shown(".editor textarea")).value = "The meter reads 41.";
  document.querySelector(".editor button").click();
  assert.ok(await shown("article", "41"));
  press("e");
  (await shown(".editor textarea")).value = "The meter reads 42.";
  document.querySelector(".editor button").click();
  assert.ok(await shown("article", "42"));
  [...document.querySelectorAll(".toast button")].at(-1).click();
  assert.ok(await shown("article", "41"));
});

test("a note is forgotten and taken back", LIMIT, async () => {
  go("#/document?path=notes/boat.md");
  (await shown("main button.danger", "Forget")).click();
  (await shown(".toast", "Forgotten: notes/boat.md")).querySelector("button").click();
  assert.ok(await shown(".toast", "Restored."));
});

test("core memory is edited", LIMIT, async () => {
  go("#/core");
  const name = await shown("[aria-label='name']");
  name.value = "Ida Falk";
  name.dispatchEvent(new window.Event("change"));
  assert.ok(await shown(".toast", "name saved."));
  go("#/core");
  assert.equal((await shown("[aria-label='name']")).value, "Ida Falk");
});

test("the index is brought up to date and examined", LIMIT, async () => {
  go("#/status");
  (await shown("button", "Update the index")).click();
  assert.ok(await shown("main p", "Up to date: "));
  (await shown("button", "Check everything")).click();
  assert.match((await shown("main [role=status] p", "o")).textContent, /./);
});

test("a wrong token is asked for again", LIMIT, async () => {
  go("#token=wrong");
  const input = await shown("#token");
  assert.match(document.querySelector("[role=alert]").textContent, /does not accept the token/);
  assert.ok(!location.href.includes("wrong"));
  input.value = token;
  document.querySelector(".token form button").click();
  assert.ok(await shown("#query"));
});
