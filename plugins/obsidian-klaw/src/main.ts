/** Klaw in Obsidian: a search pane over `klaw serve`. */

import type { Klaw } from "@klaw-memory/client";
import { type Editor, Plugin } from "obsidian";

import { DEFAULTS, KlawSettings, memoryOf, type Settings } from "./settings.ts";
import { SearchView, VIEW } from "./view.ts";

export default class KlawPlugin extends Plugin {
  settings: Settings = DEFAULTS;

  override async onload(): Promise<void> {
    this.settings = { ...DEFAULTS, ...((await this.loadData()) as Partial<Settings> | null) };
    this.registerView(VIEW, (leaf) => new SearchView(leaf, this));
    this.addRibbonIcon("search", "Search with Klaw", () => void this.show());
    this.addCommand({ id: "search", name: "Search", callback: () => void this.show() });
    this.addCommand({ id: "search-selection", name: "Search for the selection", editorCallback: (editor: Editor) => void this.show(editor.getSelection()) });
    this.addSettingTab(new KlawSettings(this.app, this));
  }

  /** Return a client with the settings of now. */
  memory = (): Klaw => memoryOf(this.app, this.settings);

  async change(settings: Partial<Settings>): Promise<void> {
    this.settings = { ...this.settings, ...settings };
    await this.saveData(this.settings);
  }

  /** Show the pane in the right sidebar; with a text, search for it. */
  async show(text = ""): Promise<void> {
    const { workspace } = this.app;
    const leaf = workspace.getLeavesOfType(VIEW)[0] ?? workspace.getRightLeaf(false);
    if (!leaf) return;
    await leaf.setViewState({ type: VIEW, active: true });
    await workspace.revealLeaf(leaf);
    if (text.trim() && leaf.view instanceof SearchView) await leaf.view.ask(text);
  }
}
