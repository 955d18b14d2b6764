/** Open what was found: a note of the vault at its line, or the text of something else. */

import { realpathSync } from "node:fs";
import { isAbsolute, relative, sep } from "node:path";

import type { Klaw, SearchResult } from "@klaw-memory/client";
import { type App, FileSystemAdapter, Modal, type PaneType, type TFile } from "obsidian";

/** Open a result at the line that has most words of the question. Throw KlawError if its document is gone. */
export async function open(app: App, klaw: Klaw, query: string, result: SearchResult, pane: PaneType | boolean): Promise<void> {
  const { file, content } = await klaw.get(result.path, { first_line: result.start_line, lines: result.end_line - result.start_line + 1 });
  const note = file === null ? null : noteAt(app, file);
  if (note) await app.workspace.getLeaf(pane).openFile(note, { active: true, eState: { line: result.start_line - 1 + lineOf(query, content) } });
  else new TextOf(app, `${result.path}:${result.start_line}-${result.end_line}`, content).open();
}

/** Return the number of the line, from 0, that has most words of a question; the first one if none has any. */
export function lineOf(query: string, text: string): number {
  const words = new Set(query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []);
  const counts = text.split("\n").map((line) => [...words].filter((word) => line.toLowerCase().includes(word)).length);
  return Math.max(0, counts.indexOf(Math.max(...counts)));
}

/** Return the note of the vault that a file is; null if it is in another place. */
function noteAt(app: App, file: string): TFile | null {
  const { adapter } = app.vault;
  if (!(adapter instanceof FileSystemAdapter)) return null;
  // Klaw may know the vault by its real path, and Obsidian by a link to it.
  for (const resolved of [(path: string) => path, real]) {
    const within = relative(resolved(adapter.getBasePath()), resolved(file));
    const note = within.startsWith("..") || isAbsolute(within) ? null : app.vault.getFileByPath(within.split(sep).join("/"));
    if (note) return note;
  }
  return null;
}

function real(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path; // a file that is gone is nowhere in the vault
  }
}

/** What is not in the vault: a saved memory, a message, a note of another directory. */
class TextOf extends Modal {
  private readonly place: string;
  private readonly text: string;

  constructor(app: App, place: string, text: string) {
    super(app);
    this.place = place;
    this.text = text;
  }

  override onOpen(): void {
    this.setTitle(this.place);
    this.contentEl.createDiv({ cls: "klaw-text-of-another-place", text: this.text });
  }

  override onClose(): void {
    this.contentEl.empty();
  }
}
