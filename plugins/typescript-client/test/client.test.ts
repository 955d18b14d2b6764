import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after, before, test } from "node:test";

import { Klaw, KlawError } from "@klaw-memory/client";
import { dataDirectory, local, localToken } from "@klaw-memory/client/node";

import { COMMAND, serve, type Served } from "./serve.ts";

let served: Served;
let klaw: Klaw;

before(async () => {
  served = await serve({ "boat.md": "# Boat\n\nThe boat lies in Split.\n", "tea.md": "---\ntags: [kitchen]\n---\nTea is in the blue tin.\n" });
  klaw = new Klaw(served);
});
after(() => served.stop());

test("a search finds a note, its lines and its heading", async () => {
  const { results } = await klaw.search("where does the boat lie", { limit: 3 });
  assert.deepEqual([results[0]?.path, results[0]?.start_line, results[0]?.heading], ["notes/boat.md", 1, ["Boat"]]);
  assert.equal(results[0]?.is_weak, false);
});

test("conditions are given as text or as an object", async () => {
  const found = await klaw.search("tin", { where: [{ key: "tags", operator: "=", value: "kitchen" }] });
  assert.equal(found.results.length, 1);
  assert.deepEqual((await klaw.search("tin", { where: ["tags=garden"] })).results, []);
});

test("what is saved is found, corrected and forgotten", async () => {
  const { path } = await klaw.save("The heron lives at the pond.", { tags: ["birds"] });
  assert.equal((await klaw.search("heron")).results[0]?.path, path);
  const corrected = await klaw.replace(path, "The heron lives at the lake.");
  const [result] = (await klaw.search("heron")).results;
  assert.deepEqual([result?.path, result?.content], [corrected.path, "The heron lives at the lake."]);
  assert.deepEqual((await klaw.forget(corrected.path)).paths, [corrected.path]);
  assert.deepEqual((await klaw.search("heron")).results, []);
});

test("a context has what fits a message, however long that is", async () => {
  const long = "Where does the boat lie? ".repeat(390);
  assert.match((await klaw.context(long)).context, /The boat lies in Split/);
  assert.equal((await klaw.context("zymurgy")).context, "");
});

test("documents come page after page", async () => {
  const paths = [];
  for await (const document of klaw.documents({ prefix: "notes/", limit: 1 })) paths.push(document.path);
  assert.deepEqual(paths, ["notes/boat.md", "notes/tea.md"]);
});

test("a chat keeps its messages", async () => {
  await klaw.append("web_1", "user", "Hello there.", { id: "m1", ts: "2026-02-24T10:30Z" });
  await klaw.append("web_1", "user", "Hello there.", { id: "m1", ts: "2026-02-24T10:30Z" });
  const { messages } = await klaw.messages("web_1");
  assert.deepEqual(messages.map((message) => message.content), ["Hello there."]);
});

test("an agent has a memory of its own, which its token opens and no other", async () => {
  const token = served.klaw("serve", "token", "--agent", "scout").trim();
  const scout = klaw.of("scout", token);
  await scout.save("The gate is open.");
  assert.equal((await scout.search("gate")).results.length, 1);
  assert.deepEqual((await klaw.search("gate")).results, []);
  await assert.rejects(new Klaw({ ...served, token }).status(), { status: 401 });
});

test("events tell what happens", async () => {
  const ending = new AbortController();
  const stream = klaw.events({ signal: ending.signal });
  const first = stream.next();
  // A notice is for streams that are open, and a stream opens some time after it was asked for.
  const saving = setInterval(() => void klaw.append("web_2", "user", `Rain at ${Date.now()}.`), 50);
  const { value } = await first;
  clearInterval(saving);
  assert.equal(value?.kind, "message");
  ending.abort();
  let rest = await stream.next();
  while (!rest.done) rest = await stream.next(); // others may have come before
  assert.equal(rest.done, true);
});

test("an error has the server's words, its status and a hint", async () => {
  await assert.rejects(klaw.get("nope.md"), (error: unknown) => {
    assert(error instanceof KlawError);
    assert.deepEqual([error.status, error.hint], [404, "`klaw search` shows paths and ids"]);
    assert.match(error.message, /no indexed document has the path or id 'nope.md'/);
    return true;
  });
  // @ts-expect-error A query is a string.
  await assert.rejects(klaw.search(3), { status: 400 });
  await assert.rejects(new Klaw({ url: served.url, token: "wrong" }).status(), { status: 401 });
});

test("a server that is not there is named, with the command that starts it", async () => {
  const gone = new Klaw({ url: "http://127.0.0.1:9" });
  await assert.rejects(gone.status(), { status: 0, message: /127\.0\.0\.1:9 cannot be reached.*klaw serve/ });
});

test("a call ends when its time is over, and when it is aborted", async () => {
  const silent: Server = createServer(() => {});
  await new Promise<void>((ready) => silent.listen(0, "127.0.0.1", ready));
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  await assert.rejects(new Klaw({ url, timeoutMs: 20 }).status(), { status: 0, message: /did not answer within 20 ms/ });
  await assert.rejects(new Klaw({ url }).status({ signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  silent.closeAllConnections();
  silent.close();
});

test("the client of this machine finds its token itself", async () => {
  assert.equal(localToken(served.dataDir), served.token);
  assert.equal(localToken(`${served.dataDir}/none`), "");
  const own = local({ url: served.url, dataDir: served.dataDir });
  assert.equal((await own.health()).status, "ok");
  assert.equal((await own.status()).embedder, "none");
  assert.equal(dataDirectory({ KLAW_DATA_DIR: "/k" }), "/k");
  assert.equal(dataDirectory({ XDG_DATA_HOME: "/d" }, "linux"), "/d/klaw");
});

test("the usual data directory is the one that klaw uses", () => {
  const home = mkdtempSync(join(tmpdir(), "klaw-home-"));
  const environment: NodeJS.ProcessEnv = { ...process.env, KLAW_EMBEDDER: "none", HOME: home, LOCALAPPDATA: home };
  for (const name of ["KLAW_DATA_DIR", "XDG_DATA_HOME"]) delete environment[name];
  const [program, ...words] = COMMAND;
  const { stdout } = spawnSync(program!, [...words, "status", "--json"], { env: environment, encoding: "utf8" });
  const found = dirname((JSON.parse(stdout) as { location: string }).location);
  assert.equal(join(home, relative(homedir(), dataDirectory({ LOCALAPPDATA: join(homedir()) }))), found);
  rmSync(home, { recursive: true });
});
