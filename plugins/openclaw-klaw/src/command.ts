/** `openclaw klaw status` and `openclaw klaw search`. */

import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";

import { memoryOf, reason, type Settings } from "./settings.ts";

const DESCRIPTOR = { name: "klaw", description: "The memory that klaw serve keeps: status, search", hasSubcommands: true };

/** Add the command. It says what is wrong if the memory cannot be reached, and ends with status 1. */
export function registerCommand(api: OpenClawPluginApi, settings: Settings): void {
  const memory = (options: { agent?: string }) => memoryOf(settings, options.agent);
  const run = async (lines: () => Promise<string[]>) => {
    try {
      for (const line of await lines()) process.stdout.write(`${line}\n`);
    } catch (error) {
      process.stderr.write(`klaw: ${reason(error)}\n`);
      process.exitCode = 1;
    }
  };
  api.registerCli(
    ({ program }) => {
      const klaw = program.command(DESCRIPTOR.name).description(DESCRIPTOR.description);
      klaw
        .command("status")
        .description("Say whether klaw serve is reached, and what its memory has.")
        .option("--agent <id>", "the agent of OpenClaw whose memory it is")
        .action((options) => run(() => status(memory(options))));
      klaw
        .command("search <query...>")
        .description("Search the memory.")
        .option("--agent <id>", "the agent of OpenClaw whose memory it is")
        .action((words: string[], options) => run(() => search(memory(options), words.join(" "))));
    },
    { descriptors: [DESCRIPTOR] },
  );
}

type Klaw = ReturnType<typeof memoryOf>;

async function status(klaw: Klaw): Promise<string[]> {
  const told = await klaw.status();
  const origins = Object.entries(told.origins).map(([name, { documents, chunks }]) => `${name}: ${documents} documents, ${chunks} chunks`);
  return [`klaw serve: ${klaw.url}`, `memory: ${told.location}`, `model: ${told.embedder}`, ...origins, ...told.problems.map((each) => `! ${each}`)];
}

async function search(klaw: Klaw, query: string): Promise<string[]> {
  const { results, notices } = await klaw.search(query);
  const found = results.map(({ path, start_line, end_line, relevance, content }) => {
    const text = content.replace(/\s+/g, " ").slice(0, 200);
    return `${path}:${start_line}-${end_line}  ${relevance === null ? "" : relevance.toFixed(2)}  ${text}`;
  });
  return [...found, ...notices.map((each) => `! ${each}`)];
}
