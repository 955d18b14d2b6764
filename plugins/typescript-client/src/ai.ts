/** Klaw's tools for the Vercel AI SDK. */

import { dynamicTool, jsonSchema, type ToolSet } from "ai";

import type { Klaw } from "./index.js";

export interface ToolOptions {
  /** The names of the tools to offer; default all that the server has. */
  only?: readonly string[] | undefined;
}

/**
 * Return the tools of a memory: memory_search, memory_save and so on, with the descriptions that the server has.
 *
 * What a tool cannot do, it says in its answer, so that the model can correct itself. Throw KlawError.
 */
export async function klawTools(klaw: Klaw, { only }: ToolOptions = {}): Promise<ToolSet> {
  const { tools } = await klaw.call("memory.tools", {});
  const missing = only?.filter((name) => !tools.some((tool) => tool.name === name)) ?? [];
  if (missing.length) throw new Error(`klaw serve has no tool ${missing.join(", ")}; it has ${tools.map((tool) => tool.name).join(", ")}`);
  const offered = tools.filter((tool) => only?.includes(tool.name) ?? true);
  return Object.fromEntries(
    offered.map(({ name, description, input_schema }) => [
      name,
      dynamicTool({
        description,
        inputSchema: jsonSchema(input_schema),
        execute: (given, { abortSignal }) => klaw.tool(name, given as Record<string, unknown>, { signal: abortSignal }),
      }),
    ]),
  );
}
