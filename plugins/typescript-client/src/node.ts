/** The memory of this machine, without its address or token in a program. */

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import { Klaw, type Settings } from "./index.js";

/**
 * Return a client for the server on this machine. Its token is read from the data directory.
 *
 * The environment may say otherwise: KLAW_URL, KLAW_TOKEN, KLAW_DATA_DIR. What `settings` names comes first.
 */
export function local(settings: Settings & { dataDir?: string | undefined } = {}): Klaw {
  const { dataDir, ...others } = settings;
  const url = settings.url || process.env["KLAW_URL"] || undefined;
  const token = settings.token || process.env["KLAW_TOKEN"] || localToken(dataDir);
  return new Klaw({ ...others, url, token });
}

/** Return the token in a data directory; default that of `klaw`. Empty if there is none: `klaw serve` makes it. */
export function localToken(dataDir = dataDirectory()): string {
  try {
    return readFileSync(join(dataDir, "serve.token"), "ascii").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

/** Return the directory in which `klaw` keeps its memory by default. */
export function dataDirectory(environment: NodeJS.ProcessEnv = process.env, platform: string = process.platform): string {
  if (environment["KLAW_DATA_DIR"]) return environment["KLAW_DATA_DIR"];
  if (platform === "win32") {
    return join(environment["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local"), "klaw", "klaw");
  }
  if (environment["XDG_DATA_HOME"]) return join(environment["XDG_DATA_HOME"], "klaw");
  return platform === "darwin" ? join(homedir(), "Library", "Application Support", "klaw") : join(homedir(), ".local", "share", "klaw");
}
