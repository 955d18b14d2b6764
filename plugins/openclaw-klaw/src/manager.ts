/** The memory as OpenClaw itself asks it: its settings page, its status, its other plugins. */

import type { Klaw, Status, Trust } from "@klaw-memory/client";
import type { MemoryPluginCapability } from "openclaw/plugin-sdk/memory-host-core";

type Runtime = NonNullable<MemoryPluginCapability["runtime"]>;
export type Manager = NonNullable<Awaited<ReturnType<Runtime["getMemorySearchManager"]>>["manager"]>;
type Found = Awaited<ReturnType<Manager["search"]>>;

/** Klaw's classes of who wrote a text are OpenClaw's. */
const ORIGINS: Record<Trust, "owner" | "agent" | "untrusted"> = { owner: "owner", agent: "agent", foreign: "untrusted" };
const LIMIT = 10;

/** Return a memory as OpenClaw expects it. Throw KlawError if it cannot be reached. */
export async function managerOf(klaw: Klaw): Promise<Manager> {
  let told = await klaw.status();
  return {
    async search(query, { maxResults, minScore, lexicalOnly, signal } = {}) {
      const { results } = await klaw.search(query, { limit: maxResults ?? LIMIT, mode: lexicalOnly ? "fts" : "hybrid", signal });
      const found: Found = results.map((result) => ({
        path: result.path,
        startLine: result.start_line,
        endLine: result.end_line,
        // The relevance is comparable between questions, as OpenClaw's minimum expects; the score is not.
        score: result.relevance ?? 0,
        snippet: result.content,
        // OpenClaw shows hits of sessions only to those who may see them.
        source: result.origin === "conversations" ? "sessions" : "memory",
        citation: `${result.path}:${result.start_line}-${result.end_line}`,
        provenance: { originClass: ORIGINS[result.trust], sessionKind: "unknown", observedAt: Date.parse(result.created_at) },
      }));
      return found.filter(({ score }) => score >= (minScore ?? 0));
    },
    async readFile({ relPath, from, lines }) {
      const { path, content, start_line, end_line } = await klaw.get(relPath, { first_line: from, lines });
      return { status: "ok", path, text: content, from: start_line, lines: end_line - start_line + 1 };
    },
    status: () => statusOf(told, klaw.url),
    async sync(given) {
      await klaw.call("memory.index", { force: given?.force });
      told = await klaw.status();
    },
    async probeEmbeddingAvailability() {
      return told.embedder === "none" ? { ok: false, error: "klaw searches by words only" } : { ok: true };
    },
    probeVectorAvailability: async () => told.embedder !== "none",
  };
}

function statusOf(told: Status, url: string): ReturnType<Manager["status"]> {
  const counts = Object.values(told.origins);
  const vectors = told.embedder !== "none";
  return {
    backend: "builtin",
    provider: "klaw",
    model: told.embedder,
    files: counts.reduce((sum, each) => sum + each.documents, 0),
    chunks: counts.reduce((sum, each) => sum + each.chunks, 0),
    dbPath: told.location,
    vector: { enabled: vectors, available: vectors },
    custom: { url, origins: told.origins, problems: told.problems },
  };
}
