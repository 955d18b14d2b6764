/** The examples of the README run as they are written, against a server, and print what it says. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { serve, type Served } from "./serve.ts";

let served: Served;
let chat: Server;
const asked: string[] = [];

/** Stands for OpenAI's server: it calls `memory_search`, and then says what that has found. */
function openai(): Server {
  return createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    asked.push(body);
    const { messages } = JSON.parse(body) as { messages: { role: string; content: string }[] };
    const told = messages.find((message) => message.role === "tool")?.content;
    const call = { id: "1", type: "function", function: { name: "memory_search", arguments: '{"query":"dentist"}' } };
    const message = told ? { role: "assistant", content: /At 9:40 on Tuesday\./.exec(told)?.[0] } : { role: "assistant", content: null, tool_calls: [call] };
    response.setHeader("content-type", "application/json");
    const choices = [{ index: 0, message, finish_reason: told ? "stop" : "tool_calls" }];
    response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "m", choices, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }));
  });
}

before(async () => {
  served = await serve({ "dentist.md": "# Dentist\n\nDr. Yilmaz expects me. At 9:40 on Tuesday.\n" });
  chat = openai().listen(0, "127.0.0.1");
  await once(chat, "listening");
});
after(() => (chat.close(), served.stop()));

const README = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const EXAMPLES = [...README.matchAll(/```ts\n(.*?)```\n\n```text\n(.*?)```/gs)];

test("the README has examples", () => assert.equal(EXAMPLES.length, 2));

for (const [number, [, program, printed]] of EXAMPLES.entries()) {
  test(`example ${number + 1} of the README prints what it says`, async () => {
    const file = new URL(`./readme-${number}.ts`, import.meta.url);
    writeFileSync(file, program!);
    const { port } = chat.address() as AddressInfo;
    const env = { ...process.env, KLAW_URL: served.url, KLAW_DATA_DIR: served.dataDir, OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`, OPENAI_API_KEY: "none" };
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(file)], { env });
      assert.equal(stdout, printed);
    } finally {
      rmSync(file);
    }
  });
}

test("the prompt of the example has what the memory knows", () => {
  assert(asked.some((body) => body.includes("Dr. Yilmaz expects me")));
});
