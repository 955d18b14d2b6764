/** The built plugin in a document of jsdom, with a stand-in for Obsidian and a real klaw serve. */

import assert from "node:assert/strict";
import { readFileSync, symlinkSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { after, before, beforeEach, test } from "node:test";

import { Klaw } from "@klaw-memory/client";

import { serve, type Served } from "../../typescript-client/test/serve.ts";
import { FileSystemAdapter, Leaf, Modal, Notice, Setting } from "./obsidian.ts";

const STAND_IN = new URL("obsidian.ts", import.meta.url).href;
registerHooks({ resolve: (name, context, next) => (name === "obsidian" ? { url: STAND_IN, format: "module-typescript", shortCircuit: true } : next(name, context)) });
const { default: KlawPlugin } = createRequire(import.meta.url)("../dist/main.js");
const MANIFEST = JSON.parse(readFileSync(new URL("../manifest.json", import.meta.url), "utf8"));

const NOTE = ["---", "tags: [harbour]", "---", "# Ferry", "", "It leaves at 06:40.", "", "## Prices", "", "A crossing costs 4 euros.", ""];

let served: Served;
let klaw: Klaw;
let app: ReturnType<typeof vault>;
let plugin: any;

before(async () => {
  served = await serve({
    "Ferry.md": NOTE.join("\n"),
    "People/Jaana.md": "Jaana steers <b>the ferry</b> <img src=x onerror=alert(1)>.\n",
  });
  klaw = new Klaw(served);
  await klaw.save("The ferry's captain likes coffee.");
});
after(() => served.stop());

/** Return an app with a vault at a directory, whose notes are those of the memory. */
function vault(base: string) {
  const main = new Leaf(null);
  const made = {
    views: {} as Record<string, unknown>,
    secretStorage: { getSecret: (name: string) => (name === "klaw-token" ? served.token : null) },
    vault: { adapter: new FileSystemAdapter(base), getFileByPath: (path: string) => (["Ferry.md", "People/Jaana.md"].includes(path) ? { path } : null) },
    workspace: {
      sidebar: [] as Leaf[],
      asked: [] as unknown[],
      getLeavesOfType: () => made.workspace.sidebar,
      getRightLeaf: () => (made.workspace.sidebar.push(new Leaf(made)), made.workspace.sidebar[0]),
      revealLeaf: async () => {},
      getLeaf: (pane: unknown) => (made.workspace.asked.push(pane), main),
    },
    main,
  };
  return made;
}

beforeEach(async () => {
  app = vault(served.notes);
  plugin = new KlawPlugin(app, MANIFEST);
  plugin.data = { url: served.url, dataDir: served.dataDir };
  await plugin.onload();
  [Modal.shown, Notice.shown] = [[], []];
});

/** Wait until something is so. */
async function until<T>(look: () => T): Promise<NonNullable<T>> {
  for (;;) {
    const found = look();
    if (found) return found as NonNullable<T>;
    await new Promise((go) => setTimeout(go, 10));
  }
}

async function searched(query: string): Promise<HTMLElement> {
  await plugin.show(query);
  return app.workspace.sidebar[0]!.view.contentEl;
}

const press = (element: Element, key: string, more: object = {}) => element.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true, ...more }));
const results = (pane: HTMLElement) => [...pane.querySelectorAll<HTMLElement>(".klaw-result")];

test("a note is opened at the line at which it answers", async () => {
  const pane = await searched("what does a crossing cost");
  const [first] = results(pane);
  assert.equal(first!.querySelector(".klaw-title")!.textContent, "Ferry");
  assert.match(first!.querySelector(".klaw-place")!.textContent!, /^notes\/Ferry\.md:\d+-\d+, relevance [01]\.\d\d$/);
  first!.click();
  const { file, state } = await until(() => app.main.opened[0]);
  assert.deepEqual([file.path, state.eState.line, state.active], ["Ferry.md", NOTE.indexOf("A crossing costs 4 euros."), true]);
  assert.deepEqual(app.workspace.asked, [false]);
});

test("what is typed is searched for, and Enter opens, with Ctrl in a new tab", async () => {
  await plugin.show();
  const pane: HTMLElement = app.workspace.sidebar[0]!.view.contentEl;
  const input = pane.querySelector("input")!;
  input.value = "who steers";
  input.dispatchEvent(new window.Event("input"));
  const first = await until(() => results(pane)[0]);
  press(input, "ArrowDown");
  assert.equal(document.activeElement, first);
  press(first, "Enter", { ctrlKey: true });
  await until(() => app.main.opened[0]);
  assert.deepEqual([app.main.opened[0]!.file.path, app.workspace.asked], ["People/Jaana.md", ["tab"]]);
  press(first, "ArrowUp");
  assert.equal(document.activeElement, input);
});

test("nothing in a note becomes a part of the page", async () => {
  const pane = await searched("who steers");
  assert.equal(pane.querySelector("img, b"), null);
  assert.match(pane.textContent!, /<img src=x/);
});

test("what is in no note is shown as a text", async () => {
  const pane = await searched("what does the captain like");
  const found = results(pane).find((each) => /saved/.test(each.textContent!))!;
  found.click();
  const shown = await until(() => Modal.shown[0]);
  assert.match(shown.title, /^saved\/.*:1-1$/);
  assert.equal(shown.contentEl.textContent, "The ferry's captain likes coffee.");
  assert.deepEqual(app.main.opened, []);
});

test("a vault that Obsidian knows by a link is the same vault, and another directory is not", async () => {
  const link = `${served.dataDir}/vault`;
  symlinkSync(served.notes, link);
  for (const [base, opened] of [[link, 1], [served.dataDir, 0]] as const) {
    app.vault.adapter = new FileSystemAdapter(base);
    app.main.opened = [];
    results(await searched("what does a crossing cost"))[0]!.click();
    await until(() => app.main.opened[0] ?? Modal.shown[0]);
    assert.equal(app.main.opened.length, opened);
  }
});

test("a question that nothing answers says so", async () => {
  assert.match((await searched("zymurgy")).textContent!, /Nothing found\./);
});

test("an answer that comes too late replaces nothing", async () => {
  await plugin.show();
  const { view } = app.workspace.sidebar[0]!;
  const earlier = view.ask("who steers");
  await view.ask("what does a crossing cost");
  await earlier;
  assert.match(results(view.contentEl)[0]!.textContent!, /Prices/);
  assert.equal(results(view.contentEl).length, 1);
  await view.ask("");
  assert.equal(results(view.contentEl).length, 0);
});

test("a server that is gone is named, in the pane and when a result is opened", async () => {
  const pane = await searched("what does a crossing cost");
  await plugin.change({ url: "http://127.0.0.1:9" });
  results(pane)[0]!.click();
  assert.match(await until(() => Notice.shown[0]), /127\.0\.0\.1:9 cannot be reached.*klaw serve/);
  assert.match((await searched("crossing")).textContent!, /cannot be reached/);
});

test("settings are kept, and the token is a secret of Obsidian", async () => {
  plugin.tabs[0].display();
  const { fields } = Setting;
  assert.deepEqual([...fields.keys()], ["Address", "Token", "Data directory", "Results"]);
  await fields.get("Data directory")!.change("/none");
  await fields.get("Token")!.change("klaw-token");
  await fields.get("Results")!.change("1");
  await fields.get("Results")!.change("many");
  assert.deepEqual(plugin.data, { url: served.url, dataDir: "/none", tokenSecret: "klaw-token", limit: 1 });
  assert.equal(results(await searched("ferry")).length, 1);
  await fields.get("Token")!.change("another");
  assert.match((await searched("ferry")).textContent!, /token is missing or wrong/);
});

test("the commands open the pane, and search for the selection", async () => {
  assert.deepEqual([...plugin.commands.keys()], ["search", "search-selection"]);
  plugin.commands.get("search-selection").editorCallback({ getSelection: () => "who steers" });
  const leaf = await until(() => app.workspace.sidebar[0]);
  await until(() => leaf.view?.contentEl.querySelector(".klaw-result"));
  plugin.ribbon[0]();
  assert.equal(app.workspace.sidebar.length, 1);
});

test("the manifest has what Obsidian asks for", () => {
  const built = JSON.parse(readFileSync(new URL("../dist/manifest.json", import.meta.url), "utf8"));
  assert.deepEqual(built, MANIFEST);
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  assert.deepEqual([MANIFEST.id, MANIFEST.version, MANIFEST.isDesktopOnly], ["klaw", version, true]);
});
