/**
 * Stands for the part of Obsidian that the plugin uses. Obsidian's package on npm has its types and no code, and the
 * program is in no registry: what the real one draws and how it moves in a note is not tested here.
 */

import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html><body></body>");
Object.assign(globalThis, { window, document: window.document, HTMLElement: window.HTMLElement });

interface Described {
  cls?: string;
  text?: string;
  type?: string;
  placeholder?: string;
  attr?: Record<string, string>;
}

/** What Obsidian adds to elements. */
Object.assign(window.HTMLElement.prototype, {
  empty(this: HTMLElement) {
    this.replaceChildren();
  },
  addClass(this: HTMLElement, name: string) {
    this.classList.add(name);
  },
  createEl(this: HTMLElement, tag: string, { cls, text, type, placeholder, attr }: Described = {}) {
    const made = window.document.createElement(tag);
    if (cls) made.className = cls;
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries({ ...attr, ...(type && { type }), ...(placeholder && { placeholder }) })) made.setAttribute(name, value);
    return this.appendChild(made);
  },
  createDiv(this: HTMLElement & { createEl(tag: string, given?: Described): HTMLElement }, given?: Described) {
    return this.createEl("div", given);
  },
});

const div = () => window.document.body.appendChild(window.document.createElement("div"));

export class FileSystemAdapter {
  base: string;
  constructor(base: string) {
    this.base = base;
  }
  getBasePath = () => this.base;
}

export class Modal {
  static shown: Modal[] = [];
  app: unknown;
  contentEl = div();
  title = "";
  constructor(app: unknown) {
    this.app = app;
  }
  setTitle(title: string) {
    this.title = title;
  }
  onOpen() {}
  open() {
    Modal.shown.push(this);
    this.onOpen();
  }
}

export class Notice {
  static shown: string[] = [];
  constructor(text: string) {
    Notice.shown.push(text);
  }
}

export class ItemView {
  leaf: Leaf;
  app: unknown;
  contentEl = div();
  constructor(leaf: Leaf) {
    [this.leaf, this.app] = [leaf, leaf.app];
  }
  registerDomEvent = (element: EventTarget, name: string, handler: EventListener) => element.addEventListener(name, handler);
}

export class Leaf {
  app: any;
  view: any;
  opened: { file: { path: string }; state: any }[] = [];
  constructor(app: unknown) {
    this.app = app;
  }
  async setViewState({ type }: { type: string }) {
    this.view ??= this.app.views[type](this);
    if (this.view.leaf === this && !this.view.isOpen) await this.view.onOpen();
    this.view.isOpen = true;
  }
  openFile = async (file: { path: string }, state: unknown) => void this.opened.push({ file, state });
}

export class Plugin {
  app: any;
  commands = new Map<string, any>();
  ribbon: (() => void)[] = [];
  tabs: PluginSettingTab[] = [];
  data: unknown = null;
  constructor(app: unknown) {
    this.app = app;
  }
  loadData = async () => this.data;
  saveData = async (data: unknown) => void (this.data = data);
  registerView = (type: string, make: unknown) => (this.app.views[type] = make);
  addRibbonIcon = (_icon: string, _title: string, run: () => void) => this.ribbon.push(run);
  addCommand = (command: { id: string }) => this.commands.set(command.id, command);
  addSettingTab = (tab: PluginSettingTab) => this.tabs.push(tab);
}

export class PluginSettingTab {
  app: unknown;
  containerEl = div();
  constructor(app: unknown) {
    this.app = app;
  }
}

class Field {
  value = "";
  change: (value: string) => unknown = () => {};
  setPlaceholder = () => this;
  setValue = (value: string) => ((this.value = value), this);
  onChange = (change: (value: string) => unknown) => ((this.change = change), this);
}

export class SecretComponent extends Field {}

export class Setting {
  static fields = new Map<string, Field>();
  name = "";
  setName = (name: string) => ((this.name = name), this);
  setDesc = () => this;
  addText = (build: (field: Field) => unknown) => this.addComponent(() => (build(new Field()), undefined), build);
  addComponent(make: (place: HTMLElement) => Field | undefined, build?: (field: Field) => unknown) {
    const field = build ? new Field() : make(div())!;
    build?.(field);
    Setting.fields.set(this.name, field);
    return this;
  }
}

export const Keymap = { isModEvent: (event: KeyboardEvent) => (event.ctrlKey ? "tab" : false) };

/** Obsidian sends requests from its own process: they have no Origin, and no rule of a browser applies. */
export async function requestUrl({ url, method, headers, body }: { url: string; method: string; headers: Record<string, string>; body?: string }) {
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
  return { status: response.status, text: await response.text() };
}
