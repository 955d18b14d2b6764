/** The types of all answers are held against answers of the server: the compiler sees these as literals. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Klaw, METHODS, type Answers, type Arguments, type Method } from "@klaw-memory/client";
import ts from "typescript";

import { serve, type Served } from "./serve.ts";

let served: Served;
let klaw: Klaw;

before(async () => {
  served = await serve({ "boat.md": "---\ntags: [sea]\nyear: 2024\n---\n# Boat\n\nThe boat lies in *Split*: [[b]], [[none]].\n", "b.md": "Split is a town. See [[boat]].\n" });
  klaw = new Klaw(served);
});
after(() => served.stop());

/** Call every operation, with answers that have something in every part. */
async function answers(): Promise<Map<Method, unknown[]>> {
  const found = new Map<Method, unknown[]>(METHODS.map((method) => [method, []]));
  const ask = async <M extends Method>(method: M, given: Arguments[M]): Promise<Answers[M]> => {
    const answer = await klaw.call(method, given);
    found.get(method)!.push(answer);
    return answer;
  };
  await ask("memory.search", { query: "boat split" });
  await ask("memory.search", { query: "nothing of this kind" });
  await ask("memory.context", { message: "Where does the boat lie?" });
  await ask("memory.nearest", { query: "boat", texts: ["a boat", "a town"] });
  await ask("memory.get", { path: "notes/boat.md" });
  await ask("memory.rendered", { path: "notes/boat.md" });
  await ask("memory.links", { path: "notes/boat.md" });
  await ask("memory.documents", { limit: 1 });
  await ask("memory.collections", {});
  await ask("memory.sources", {});
  const saved = await ask("memory.save", { text: "I like tea.", tags: ["drinks"], chat_id: "web_1" });
  await ask("memory.get", { path: saved.path });
  const replaced = await ask("memory.replace", { path: saved.path, text: "I like coffee." });
  await ask("memory.rendered", { path: replaced.path });
  await ask("memory.recent", {});
  await ask("memory.forget", { path: "notes/b.md" });
  await ask("memory.restore", { path: "notes/b.md" });
  await ask("memory.append", { chat: "web_1", role: "user", content: "I live in Lyon.", sender_id: "7", name: "Ada" });
  await ask("memory.chats", {});
  await ask("memory.messages", { chat: "web_1" });
  await ask("memory.status", {});
  await ask("memory.doctor", {});
  await ask("memory.extensions", {});
  await ask("memory.core_get", {});
  await ask("memory.core_update", { section: "user", key: "name", value: "Ada" });
  await ask("memory.core_delete", { section: "user", key: "name" });
  await ask("memory.tools", {});
  await ask("memory.tool", { name: "memory_remember", arguments: { fact: "Ada lives in Split", slot: "home=Split" } });
  await ask("memory.index", {});
  while ((await ask("memory.index_state", {})).state === "running");
  await ask("memory.facts", { everything: true });
  await ask("memory.facts", { query: "where does Ada live" });
  await ask("memory.fact_history", { name: "home" });
  return found;
}

test("every answer has the type that it is said to have, no more and no less", async () => {
  const found = await answers();
  assert.deepEqual(METHODS.filter((method) => !found.get(method)!.length), []);
  assert((found.get("memory.facts")![1] as Answers["memory.facts"]).facts.length);
  const lines = [...found].flatMap(([method, values]) =>
    values.map((value, number) => `export const ${method.replace(".", "_")}_${number}: Answers["${method}"] = ${JSON.stringify(value)};`),
  );
  assert.deepEqual(compiled(lines), []);
});

test("an answer with a field that its type lacks would be seen, also deep inside, and so would a missing one", () => {
  const state = `{ state: "running", progress: { stage: "index", done: 1, total: 2, documents: 0, chunks: 0`;
  assert.match(compiled([`export const a: Answers["memory.index"] = ${state}, more: 1 } };`])[0]!, /'more' does not exist/);
  assert.match(compiled([`export const a: Answers["memory.forget"] = { paths: [] };`])[0]!, /'chunks' is missing/);
});

/** Return what the compiler says against a program. */
function compiled(lines: string[]): string[] {
  const place = mkdtempSync(join(fileURLToPath(new URL(".", import.meta.url)), "answers-"));
  try {
    const file = join(place, "answers.ts");
    writeFileSync(file, [`import type { Answers } from "@klaw-memory/client";`, ...lines].join("\n"));
    const options = { strict: true, noEmit: true, exactOptionalPropertyTypes: true, skipLibCheck: true, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023 };
    const program = ts.createProgram([file], { ...options, types: [] });
    return ts.getPreEmitDiagnostics(program).map((each) => ts.flattenDiagnosticMessageText(each.messageText, "\n"));
  } finally {
    rmSync(place, { recursive: true });
  }
}
