/** The search pane. What is found is shown as text: nothing in a note becomes HTML. */

import type { SearchResult } from "@klaw-memory/client";
import { ItemView, Keymap, Notice, type WorkspaceLeaf } from "obsidian";

import type KlawPlugin from "./main.ts";
import { open } from "./opening.ts";

export const VIEW = "klaw-search";
const WAIT_MS = 250;
const TEXT_CHARACTERS = 300;

export class SearchView extends ItemView {
  private readonly plugin: KlawPlugin;
  private input!: HTMLInputElement;
  private found!: HTMLElement;
  private asked = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(leaf: WorkspaceLeaf, plugin: KlawPlugin) {
    super(leaf);
    this.plugin = plugin;
  }

  override getViewType = (): string => VIEW;
  override getDisplayText = (): string => "Klaw";
  override getIcon = (): string => "search";

  override async onOpen(): Promise<void> {
    this.contentEl.empty();
    this.contentEl.addClass("klaw-search");
    this.input = this.contentEl.createEl("input", { type: "search", placeholder: "Ask your notes…", attr: { "aria-label": "Search with Klaw" } });
    this.found = this.contentEl.createDiv({ attr: { "aria-live": "polite" } });
    this.registerDomEvent(this.input, "input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.search(), WAIT_MS);
    });
    this.registerDomEvent(this.input, "keydown", (event) => {
      if (event.key === "Enter") void this.search();
      if (event.key === "ArrowDown") this.found.querySelector<HTMLElement>(".klaw-result")?.focus();
    });
    this.input.focus();
  }

  override async onClose(): Promise<void> {
    clearTimeout(this.timer);
    this.asked.abort();
  }

  /** Search for a text, as if it had been typed. */
  async ask(text: string): Promise<void> {
    this.input.value = text;
    this.input.focus();
    await this.search();
  }

  private async search(): Promise<void> {
    clearTimeout(this.timer);
    this.asked.abort(); // an answer to what was asked before would come too late
    const { signal } = (this.asked = new AbortController());
    const query = this.input.value.trim();
    if (!query) return this.found.empty();
    try {
      const { results, notices } = await this.plugin.memory().search(query, { limit: this.plugin.settings.limit, signal });
      if (signal.aborted) return;
      this.found.empty();
      const weak = results.filter((result) => result.is_weak);
      for (const result of results) if (!result.is_weak) this.show(this.found, query, result);
      for (const notice of results.length ? notices : [...notices, "Nothing found."]) this.say(notice);
      if (weak.length) this.fold(query, weak, weak.length === results.length);
    } catch (error) {
      if (signal.aborted) return;
      this.found.empty();
      this.say(error instanceof Error ? error.message : String(error));
    }
  }

  private say(text: string): void {
    this.found.createDiv({ cls: "klaw-notice", text });
  }

  private fold(query: string, weak: readonly SearchResult[], open: boolean): void {
    const folded = this.found.createEl("details");
    folded.open = open;
    folded.createEl("summary", { cls: "klaw-notice", text: `${weak.length} weak ${weak.length === 1 ? "match" : "matches"}` });
    for (const result of weak) this.show(folded, query, result);
  }

  private show(where: HTMLElement, query: string, result: SearchResult): void {
    const { path, start_line, end_line, heading, relevance, content } = result;
    const item = where.createDiv({ cls: "klaw-result", attr: { role: "link", tabindex: "0" } });
    const name = path.split("/").at(-1)!.replace(/\.md$/, "");
    item.createDiv({ cls: "klaw-title", text: [name, ...heading.filter((each) => each !== name)].join(" › ") });
    const share = relevance === null ? "" : `, relevance ${relevance.toFixed(2)}`;
    item.createDiv({ cls: "klaw-place", text: `${path}:${start_line}-${end_line}${share}` });
    item.createDiv({ cls: "klaw-text", text: content.length > TEXT_CHARACTERS ? `${content.slice(0, TEXT_CHARACTERS)}…` : content });
    const go = (event: MouseEvent | KeyboardEvent) => void this.open(query, result, event);
    item.addEventListener("click", go);
    item.addEventListener("keydown", (event) => {
      if (event.key === "Enter") go(event);
      if (event.key === "ArrowDown" || event.key === "ArrowUp") this.step(item, event.key === "ArrowDown" ? 1 : -1);
    });
  }

  private async open(query: string, result: SearchResult, event: MouseEvent | KeyboardEvent): Promise<void> {
    try {
      await open(this.app, this.plugin.memory(), query, result, Keymap.isModEvent(event));
    } catch (error) {
      new Notice(error instanceof Error ? error.message : String(error));
    }
  }

  /** Go to the next or the previous result; above the first one is the input. */
  private step(item: HTMLElement, by: number): void {
    const all = [...this.found.querySelectorAll<HTMLElement>(".klaw-result")];
    const next = all.indexOf(item) + by;
    (next < 0 ? this.input : all[next])?.focus();
  }
}
