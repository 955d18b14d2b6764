/** The settings of the plugin, and the client that they describe. */

import type { Klaw } from "@klaw-memory/client";
import { local } from "@klaw-memory/client/node";

export interface Settings {
  url?: string;
  token?: string;
  dataDir?: string;
  agent?: string;
  perAgent?: boolean;
  recall?: boolean;
  recallTokens?: number;
  recallTimeoutMs?: number;
  capture?: boolean;
}

/** Return a client for the memory of an agent. The token is read again each time: `klaw serve` may have made a new one. */
export function memoryOf(settings: Settings, agentId: string | undefined, timeoutMs?: number): Klaw {
  const agent = settings.agent || (settings.perAgent && agentId) || undefined;
  return local({ url: settings.url, token: settings.token, dataDir: settings.dataDir, agent, timeoutMs });
}

/** Return what is said about an error, in one line. */
export const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));
