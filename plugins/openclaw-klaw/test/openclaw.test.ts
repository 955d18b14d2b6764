/** A turn of OpenClaw itself, with the plugin in its memory slot, a real klaw serve, and a model that calls a tool. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Klaw } from "@klaw-memory/client";

import { serve, type Served } from "../../typescript-client/test/serve.ts";

const PLUGIN = fileURLToPath(new URL("..", import.meta.url));
const OPENCLAW = fileURLToPath(new URL("../openclaw.mjs", import.meta.resolve("openclaw")));

interface Request {
  messages: { role: string; content: string | { text?: string }[] }[];
  tools?: { function: { name: string } }[];
}

let served: Served;
let klaw: Klaw;
let home: string;
const asked: Request[] = [];

/** Stands for a provider's server: the model saves something, and then answers. */
const model = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const given = JSON.parse(body) as Request;
  asked.push(given);
  const save = { index: 0, id: "1", type: "function", function: { name: "memory_save", arguments: JSON.stringify({ content: "The sail is torn." }) } };
  const done = given.messages.some(({ role }) => role === "tool");
  const deltas = done ? [{ role: "assistant", content: "I have written it down." }] : [{ role: "assistant", tool_calls: [save] }];
  const choices = [...deltas.map((delta) => ({ delta, finish_reason: null })), { delta: {}, finish_reason: done ? "stop" : "tool_calls" }];
  response.setHeader("content-type", "text/event-stream");
  for (const choice of choices) response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, ...choice }] })}\n\n`);
  response.end("data: [DONE]\n\n");
});

before(async () => {
  served = await serve({ "boat.md": "# Boat\n\nThe boat lies in Split.\n" });
  klaw = new Klaw(served);
  home = mkdtempSync(join(tmpdir(), "klaw-openclaw-"));
  await once(model.listen(0, "127.0.0.1"), "listening");
  const baseUrl = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`;
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const models = [{ id: "m", name: "m", contextWindow: 128_000, maxTokens: 1_000, input: ["text"], reasoning: false, cost }];
  const config = {
    gateway: { mode: "local" },
    tools: { toolSearch: false }, // else the model finds the tools by a search of its own
    agents: { defaults: { model: "local/m", workspace: join(home, "workspace") } },
    models: { providers: { local: { baseUrl, apiKey: "none", api: "openai-completions", models } } },
    plugins: {
      load: { paths: [PLUGIN] },
      slots: { memory: "klaw" },
      entries: { klaw: { enabled: true, hooks: { allowConversationAccess: true }, config: { url: served.url, dataDir: served.dataDir, capture: true } } },
    },
  };
  writeFileSync(join(home, "openclaw.json"), JSON.stringify(config));
});

after(async () => {
  model.close();
  rmSync(home, { recursive: true, force: true });
  await served.stop();
});

function openclaw(...words: string[]) {
  const env = { ...process.env, HOME: home, OPENCLAW_STATE_DIR: home, OPENCLAW_CONFIG_PATH: join(home, "openclaw.json") };
  return promisify(execFile)(process.execPath, [OPENCLAW, ...words], { env, cwd: home, maxBuffer: 1 << 26 });
}

test("a turn begins with what the memory knows, and what the model saves and a person says is in the memory", async () => {
  const { stdout } = await openclaw("agent", "--local", "--agent", "main", "--message", "Where does the boat lie? Its sail is torn.");
  assert.match(stdout, /I have written it down\./);
  const { messages, tools } = asked[0]!;
  const prompt = messages.map(({ content }) => (typeof content === "string" ? content : content.map(({ text }) => text).join("\n"))).join("\n");
  assert.match(prompt, /<klaw-memory>\nFrom long-term memory.*The boat lies in Split\.\s*<\/klaw-memory>/s);
  assert.match(prompt, /memory_save what will matter later/);
  const offered = tools!.map((tool) => tool.function.name).filter((name) => name.startsWith("memory_"));
  assert.deepEqual(offered.sort(), ["memory_forget", "memory_get", "memory_save", "memory_search"]);
  const [saved] = (await klaw.search("is the sail torn", { path: "saved/" })).results;
  assert.deepEqual([saved?.content, saved?.trust], ["The sail is torn.", "agent"]);
  const { chats } = await klaw.call("memory.chats", {});
  const kept = (await klaw.messages(chats.find(({ name }) => name.startsWith("openclaw_"))!.name)).messages;
  assert.deepEqual(kept.map(({ content }) => content), ["Where does the boat lie? Its sail is torn.", "I have written it down."]);
});
