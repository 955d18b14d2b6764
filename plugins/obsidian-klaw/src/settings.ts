/** The settings of the plugin, their tab, and the client that they describe. */

import type { Klaw } from "@klaw-memory/client";
import { DEFAULT_URL } from "@klaw-memory/client";
import { local } from "@klaw-memory/client/node";
import { type App, PluginSettingTab, requestUrl, SecretComponent, Setting } from "obsidian";

import type KlawPlugin from "./main.ts";

export interface Settings {
  url: string;
  /** The name of the secret that has the token. The token itself would be synced with the vault. */
  tokenSecret: string;
  dataDir: string;
  limit: number;
}

export const DEFAULTS: Settings = { url: DEFAULT_URL, tokenSecret: "", dataDir: "", limit: 20 };
const MAX_LIMIT = 200;

/** Return a client. Without a secret, the token is read from Klaw's data directory, which `klaw serve` writes. */
export function memoryOf(app: App, { url, tokenSecret, dataDir }: Settings): Klaw {
  const token = (tokenSecret && app.secretStorage.getSecret(tokenSecret)) || undefined;
  return local({ url, token, dataDir: dataDir || undefined, fetch: ask });
}

/** Ask with Obsidian's own requests: the server refuses those that a page of another origin sends. */
const ask: typeof fetch = async (url, init = {}) => {
  const { method, headers, body, signal } = init;
  const sent = requestUrl({ url: String(url), method: method ?? "GET", headers: headers as Record<string, string>, body: body as string, throw: false });
  const ended = new Promise<never>((_, end) => signal?.addEventListener("abort", () => end(signal.reason), { once: true }));
  const { status, text } = await Promise.race([sent, ended]);
  return new Response(text, { status });
};

export class KlawSettings extends PluginSettingTab {
  private readonly plugin: KlawPlugin;

  constructor(app: App, plugin: KlawPlugin) {
    super(app, plugin);
    this.plugin = plugin;
  }

  override display(): void {
    const { containerEl, plugin } = this;
    const { settings } = plugin;
    containerEl.empty();
    new Setting(containerEl)
      .setName("Address")
      .setDesc("Where klaw serve listens.")
      .addText((field) => field.setPlaceholder(DEFAULT_URL).setValue(settings.url).onChange((url) => plugin.change({ url: url.trim() || DEFAULT_URL })));
    new Setting(containerEl)
      .setName("Token")
      .setDesc("A secret with what `klaw serve token` prints. On the machine of the server none is needed.")
      .addComponent((place) => new SecretComponent(this.app, place).setValue(settings.tokenSecret).onChange((tokenSecret) => plugin.change({ tokenSecret })));
    new Setting(containerEl)
      .setName("Data directory")
      .setDesc("Klaw's data directory, if it is not the usual one.")
      .addText((field) => field.setValue(settings.dataDir).onChange((dataDir) => plugin.change({ dataDir: dataDir.trim() })));
    new Setting(containerEl)
      .setName("Results")
      .setDesc(`At most this many, from 1 to ${MAX_LIMIT}.`)
      .addText((field) =>
        field.setValue(String(settings.limit)).onChange((text) => {
          const limit = Number(text);
          if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) plugin.change({ limit });
        }),
      );
  }
}
