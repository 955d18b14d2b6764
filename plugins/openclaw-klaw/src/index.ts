/** Klaw as the memory of OpenClaw: it fills the slot `memory` with what `klaw serve` keeps. */

import { definePluginEntry, type OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";

import { registerCommand } from "./command.ts";
import { managerOf } from "./manager.ts";
import { memoryOf, reason, type Settings } from "./settings.ts";
import { TOOLS, toolsFor } from "./tools.ts";
import { captureAfter, recallBefore } from "./turns.ts";

const GUIDE = [
  "## Memory",
  "Your long-term memory has the user's notes, past conversations and what you saved. What seems to fit a message stands before it, in <klaw-memory>.",
  "- memory_search before you say that you do not know something, or do something that was perhaps decided before; memory_get reads more of a result.",
  "- memory_save what will matter later: decisions, preferences, dates. Replace what has changed with `supersedes`.",
  "- memory_forget only when the user asks for it. Tell which path a statement comes from.",
  "",
];

export default definePluginEntry({
  id: "klaw",
  name: "Klaw",
  description: "Long-term memory that klaw serve keeps",
  register(api: OpenClawPluginApi) {
    const settings = (api.pluginConfig ?? {}) as Settings;
    api.registerMemoryCapability({
      promptBuilder: ({ availableTools }) => (availableTools.has("memory_search") ? GUIDE : []),
      runtime: {
        resolveMemoryBackendConfig: () => ({ backend: "builtin" }),
        async getMemorySearchManager({ agentId }) {
          try {
            return { manager: await managerOf(memoryOf(settings, agentId)) };
          } catch (error) {
            return { manager: null, error: reason(error) };
          }
        },
      },
    });
    api.registerTool((context) => toolsFor(settings, context), { names: Object.keys(TOOLS) });
    registerCommand(api, settings);
    if (settings.recall !== false) recallBefore(api, settings);
    if (settings.capture) captureAfter(api, settings);
  },
});
