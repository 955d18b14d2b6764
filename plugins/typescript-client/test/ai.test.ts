import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Klaw } from "@klaw-memory/client";
import { klawTools } from "@klaw-memory/client/ai";
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";

import { serve, type Served } from "./serve.ts";

let served: Served;
let klaw: Klaw;

before(async () => {
  served = await serve({ "boat.md": "# Boat\n\nThe boat lies in Split.\n" });
  klaw = new Klaw(served);
});
after(() => served.stop());

type Prompt = Parameters<MockLanguageModelV4["doGenerate"]>[0]["prompt"];

/** A model that calls a tool, and then answers with what the tool has returned. */
function calling(toolName: string, input: object) {
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const prompts: Prompt[] = [];
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      prompts.push(prompt);
      const told = prompt.findLast((message) => message.role === "tool");
      const content = told
        ? { type: "text" as const, text: JSON.stringify(told.content) }
        : { type: "tool-call" as const, toolCallId: "1", toolName, input: JSON.stringify(input) };
      const reason = told ? ("stop" as const) : ("tool-calls" as const);
      return { content: [content], finishReason: { unified: reason, raw: reason }, usage, warnings: [] };
    },
  });
  return model;
}

test("a model searches the memory with the server's tool", async () => {
  const tools = await klawTools(klaw);
  const model = calling("memory_search", { query: "where does the boat lie" });
  const { text } = await generateText({ model, tools, prompt: "Where is my boat?", stopWhen: isStepCount(3) });
  assert.match(text, /The boat lies in Split/);
  const offered = model.doGenerateCalls[0]?.tools?.map((tool) => tool.name);
  assert.deepEqual(offered, (await klaw.call("memory.tools", {})).tools.map((tool) => tool.name));
});

test("a model saves, and the memory has it", async () => {
  const model = calling("memory_save", { content: "The anchor is new.", tags: ["boat"] });
  await generateText({ model, tools: await klawTools(klaw), prompt: "Remember it.", stopWhen: isStepCount(3) });
  assert.equal((await klaw.search("anchor", { where: ["tags=boat"] })).results[0]?.content, "The anchor is new.");
});

test("a model that calls a tool wrongly reads why", async () => {
  const model = calling("memory_search", { query: "boat", limit: "many" });
  const { text } = await generateText({ model, tools: await klawTools(klaw), prompt: "Search.", stopWhen: isStepCount(3) });
  assert.match(text, /limit must be a whole number/);
});

test("some tools alone are offered, and a name that there is not is an error", async () => {
  assert.deepEqual(Object.keys(await klawTools(klaw, { only: ["memory_get"] })), ["memory_get"]);
  await assert.rejects(klawTools(klaw, { only: ["memory_dig"] }), /no tool memory_dig; it has .*memory_search/);
});
