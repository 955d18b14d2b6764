/** A `klaw serve` of its own for each file of tests, with two notes. KLAW_PYTHON names a Python that has Klaw. */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The words that start `klaw`. */
export const COMMAND = process.env["KLAW_PYTHON"] ? [process.env["KLAW_PYTHON"], "-m", "klaw_core"] : ["klaw"];

/** No model has to be loaded: words find what these tests look for. */
const ENVIRONMENT = { ...process.env, KLAW_EMBEDDER: "none" };

export interface Served {
  url: string;
  token: string;
  dataDir: string;
  notes: string;
  klaw(...words: string[]): string;
  stop(): Promise<void>;
}

/** Index notes, by file name, and serve them. */
export async function serve(notes: Record<string, string>): Promise<Served> {
  const place = mkdtempSync(join(tmpdir(), "klaw-node-"));
  const [dataDir, workspace] = [join(place, "data"), join(place, "notes")];
  mkdirSync(workspace);
  for (const [name, text] of Object.entries(notes)) {
    mkdirSync(join(workspace, name, ".."), { recursive: true });
    writeFileSync(join(workspace, name), text);
  }
  const klaw = (...words: string[]) => {
    const [program, ...given] = [...COMMAND, ...words, "--data-dir", dataDir];
    const done = spawnSync(program!, given, { env: ENVIRONMENT, encoding: "utf8" });
    if (done.status !== 0) throw new Error(`klaw ${words.join(" ")}: ${done.error ?? done.stderr}`);
    return done.stdout;
  };
  klaw("index", workspace);
  const [program, ...given] = [...COMMAND, "serve", "--port", "0", "--json", "--data-dir", dataDir];
  const server = spawn(program!, given, { env: ENVIRONMENT, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(server, "exit");
  let errors = "";
  server.stderr.on("data", (part: Buffer) => (errors += part));
  let said = "";
  for await (const part of server.stdout) if ((said += part).includes("}")) break;
  if (!said.includes("}")) throw new Error(`klaw serve has ended: ${errors}`);
  const stop = async () => {
    server.kill();
    await ended;
    rmSync(place, { recursive: true, force: true });
  };
  const token = readFileSync(join(dataDir, "serve.token"), "utf8").trim();
  return { url: (JSON.parse(said) as { url: string }).url, token, dataDir, notes: workspace, klaw, stop };
}
