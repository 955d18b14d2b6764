/** The tools of the model. They have the names of OpenClaw's own, so that its rules for tools fit. */

import type { AnyAgentTool, OpenClawPluginToolContext } from "openclaw/plugin-sdk/plugin-entry";

import { memoryOf, reason, type Settings } from "./settings.ts";

type Klaw = ReturnType<typeof memoryOf>;

interface Described {
  label: string;
  description: string;
  parameters: { type: "object"; properties: Record<string, object>; required?: string[]; additionalProperties: false };
  /** Whether it changes the memory, which only the owner may. */
  writes?: boolean;
  run(klaw: Klaw, given: Record<string, unknown>, signal: AbortSignal | undefined): Promise<object>;
}

const string = (description: string) => ({ type: "string", description });
const strings = (description: string) => ({ type: "array", items: { type: "string" }, description });
const integer = (description: string, minimum: number, maximum: number) => ({ type: "integer", description, minimum, maximum });
const object = (properties: Record<string, object>, required: string[]) => ({ type: "object", properties, required, additionalProperties: false }) as const;

/** Return what calls a tool of the server, which checks the arguments and says in its answer what is wrong with them. */
const onServer = (name: string): Described["run"] => (klaw, given, signal) => klaw.tool(name, given, { signal });

export const TOOLS: Record<string, Described> = {
  memory_search: {
    label: "Memory Search",
    description: "Search long-term memory: notes, past conversations, saved facts. Use it before saying you do not know.",
    parameters: object(
      {
        query: string("What to find, in plain words; empty to list by tags or path."),
        limit: integer("Chunks; 10 by default.", 1, 50),
        path: string("Path prefix: notes/2026/."),
        since: string("From when on: 2026-02-24 or 7d."),
        tags: strings("Only what has all these tags."),
      },
      ["query"],
    ),
    run: onServer("memory_search"),
  },
  memory_get: {
    label: "Memory Get",
    description: "Read a note, conversation or saved memory around a search result.",
    parameters: object(
      {
        path: string("A result's path: notes/a.md or notes/a.md:12-40."),
        first_line: integer("From this line on.", 1, 1_000_000_000),
        lines: integer("Lines; 200 by default.", 1, 2_000),
      },
      ["path"],
    ),
    run: onServer("memory_get"),
  },
  memory_save: {
    label: "Memory Save",
    description: "Save a fact, decision or event for later, in a sentence that is clear by itself.",
    parameters: object(
      { content: string("The text to remember."), tags: strings("Such as work."), supersedes: string("Path of the saved memory that this replaces.") },
      ["content"],
    ),
    writes: true,
    run: onServer("memory_save"),
  },
  memory_forget: {
    label: "Memory Forget",
    description: "Forget a saved memory for good, when the user asks for it. To correct one, save its new version with supersedes.",
    parameters: object({ path: string("The path of a saved memory, as a search returns it: saved/2026-02-24/0123456789ab.") }, ["path"]),
    writes: true,
    run: forget,
  },
};

/** Forget a saved memory. A note of the user is not the model's to take out of the index. */
async function forget(klaw: Klaw, { path }: Record<string, unknown>, signal: AbortSignal | undefined): Promise<object> {
  const place = typeof path === "string" ? path.replace(/:\d+-\d+$/, "") : "";
  if (!place.startsWith("saved/")) return { error: `memory_forget: only saved memories can be forgotten, not ${JSON.stringify(path)}` };
  return { forgotten: (await klaw.forget(place, { signal })).paths };
}

/** Return the tools for one turn. Others than the owner may only read. */
export function toolsFor(settings: Settings, context: OpenClawPluginToolContext): AnyAgentTool[] {
  const offered = Object.entries(TOOLS).filter(([, tool]) => !tool.writes || context.senderIsOwner !== false);
  return offered.map(([name, { label, description, parameters, run }]) => {
    const execute = async (_id: string, given: Record<string, unknown>, signal?: AbortSignal) => {
      const details = await run(memoryOf(settings, context.agentId), given, signal).catch((error: unknown) => ({ error: reason(error) }));
      return { content: [{ type: "text" as const, text: JSON.stringify(details) }], details };
    };
    return { name, label, description, parameters, execute } as AnyAgentTool;
  });
}
