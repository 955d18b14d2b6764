// Generated from /openapi.json by generate.py: do not edit.

/** The arguments of each operation, by its name. */
export interface Arguments {
  /** Find the chunks that answer a question, best first. */
  "memory.search": {
    /** The question, in plain words; without one, conditions list the newest. */
    query?: string | undefined;
    /** At most this many chunks; default 10. */
    limit?: number | undefined;
    /** By words and meaning (hybrid), words (fts) or meaning (vector). */
    mode?: "hybrid" | "fts" | "vector" | undefined;
    /** Collections; default all but separate ones. */
    collection?: readonly string[] | undefined;
    /** Only this source: MEMORY.md, conversation, manual. */
    source?: string | undefined;
    /** Only paths that start with this: notes/2026/. */
    path?: string | undefined;
    /** Only this chat: telegram_123456. */
    chat_id?: string | undefined;
    /** From when on: 2026-02-24, 2026-02, 7d, last week. */
    since?: string | undefined;
    /** Up to when; a day is included. */
    until?: string | undefined;
    /** Only metadata like tags=work, year>=2025. */
    where?: readonly (string | { key: string; operator: "=" | "!=" | "<" | "<=" | ">" | ">=" | "in"; value: string | number | boolean | readonly unknown[] })[] | undefined;
    /** Leave out results with a lower score. */
    min_score?: number | undefined;
    /** Leave out results with a lower relevance. */
    min_relevance?: number | undefined;
    /** At most this many chunks per note; default 3. */
    per_document?: number | undefined;
  };
  /** Return the index of the text that is nearest in meaning to a question that was searched for before. */
  "memory.nearest": {
    /** The question. */
    query: string;
    /** Parts of a result's text. */
    texts: readonly string[];
  };
  /** Return the text from memory for a prompt with a message. */
  "memory.context": {
    /** The message; empty for the stable part only. */
    message: string;
    /** The chat of the message: telegram_123456. */
    chat?: string | undefined;
    /** At most this many tokens; default 1000. */
    budget?: number | undefined;
    /** Sources of items that the model already has. */
    seen?: readonly string[] | undefined;
    /** Only the part that is always the same (stable), or the part that depends on the message. */
    part?: "stable" | "volatile" | undefined;
    /** Only metadata like tags=work, year>=2025. */
    where?: readonly (string | { key: string; operator: "=" | "!=" | "<" | "<=" | ">" | ">=" | "in"; value: string | number | boolean | readonly unknown[] })[] | undefined;
    /** Leave out results with a lower relevance. */
    min_relevance?: number | undefined;
    /** The lowest class of texts to take; default agent. */
    trust?: "owner" | "agent" | "foreign" | undefined;
  };
  /** Read a document, or some of its lines. */
  "memory.get": {
    /** A document's path: notes/a.md. */
    path: string;
    /** The first line to read. */
    first_line?: number | undefined;
    /** The number of lines. */
    lines?: number | undefined;
  };
  /** Forget a saved memory, or exclude a note from its workspace. */
  "memory.forget": {
    /** A document's path: notes/a.md. */
    path: string;
  };
  /** Restore a forgotten note. */
  "memory.restore": {
    /** A document's path: notes/a.md. */
    path: string;
  };
  /** List documents by path, one page at a time. */
  "memory.documents": {
    /** The collection; default memory. */
    collection?: string | undefined;
    /** Only paths that start with this; empty for all. */
    prefix?: string | undefined;
    /** The last path of the previous page; empty for the first one. */
    after?: string | undefined;
    /** At most this many. */
    limit?: number | undefined;
  };
  /** List the newest documents. */
  "memory.recent": {
    /** At most this many; default 10. */
    limit?: number | undefined;
    /** Only this source. */
    origin?: string | undefined;
    /** The collection; default memory. */
    collection?: string | undefined;
  };
  /** List the collections, and those that a search covers if it names none. */
  "memory.collections": Record<never, never>;
  /** List the sources of documents. */
  "memory.sources": Record<never, never>;
  /** Save a text; it can be found at once. */
  "memory.save": {
    /** The text to save. */
    text: string;
    /** The source label in results; default manual. */
    source?: string | undefined;
    /** The chat that it comes from: telegram_123456. */
    chat_id?: string | undefined;
    /** Tags, which filters find: tags=NAME. */
    tags?: readonly string[] | undefined;
    /** The path of the saved memory that it replaces. */
    supersedes?: string | undefined;
  };
  /** Save a text in place of a saved one, with its source and chat; `klaw history` shows the old one. */
  "memory.replace": {
    /** The path of the saved memory: saved/2026-02-24/0123456789ab. */
    path: string;
    /** The new text. */
    text: string;
    /** Its date; default that of the old text. */
    created_at?: string | undefined;
    /** Its tags; default those of the old text. */
    tags?: readonly string[] | undefined;
  };
  /** Report what is indexed. */
  "memory.status": Record<never, never>;
  /** Examine everything. */
  "memory.doctor": Record<never, never>;
  /** Report which optional parts are installed. */
  "memory.extensions": Record<never, never>;
  /** Start an index run; its progress is sent as events. */
  "memory.index": {
    /** Only this source. */
    origin?: string | undefined;
    /** Chunk every document again. */
    force?: boolean | undefined;
  };
  /** Report the progress of the index run. */
  "memory.index_state": Record<never, never>;
  /** Read core memory. */
  "memory.core_get": Record<never, never>;
  /** Set a key of core memory. */
  "memory.core_update": {
    /** The section: about the user or the agent. */
    section: "user" | "agent";
    /** The key. */
    key: string;
    /** The value; it may be empty. */
    value: string;
  };
  /** Delete a key of core memory. */
  "memory.core_delete": {
    /** The section: about the user or the agent. */
    section: "user" | "agent";
    /** The key. */
    key: string;
  };
  /** List the tools that a language model can be offered. */
  "memory.tools": Record<never, never>;
  /** Call a tool; invalid arguments are reported in the answer. */
  "memory.tool": {
    /** The tool's name. */
    name: string;
    /** Arguments that satisfy the tool's schema. */
    arguments?: Record<string, unknown> | undefined;
  };
  /** Read a document, and if it is Markdown, as a tree of blocks, in which HTML is text. */
  "memory.rendered": {
    /** A document's path: notes/a.md. */
    path: string;
  };
  /** What a document links to, what links to it (backlinks), and which of its links are broken. */
  "memory.links": {
    /** A document's path: notes/a.md. */
    path: string;
  };
  /** List chats, the most recently active first. */
  "memory.chats": Record<never, never>;
  /** Read the last messages of a chat, oldest first. */
  "memory.messages": {
    /** A chat's name: CHANNEL_ID, as in telegram_123456. */
    chat: string;
    /** At most this many; default 100. */
    limit?: number | undefined;
    /** Only from this time on. */
    since?: string | undefined;
    /** Only up to this time; a day is included. */
    until?: string | undefined;
  };
  /** Append a message to a chat. */
  "memory.append": {
    /** A chat's name: CHANNEL_ID, as in telegram_123456. */
    chat: string;
    /** The speaker. */
    role: "user" | "assistant" | "system" | "tool";
    /** The text of the message. */
    content: string;
    /** The id of the message; repeating a message with its id and its time adds nothing. */
    id?: string | undefined;
    /** The time of the message; default now. */
    ts?: string | undefined;
    /** Who wrote the message, in the channel: facts belong to this person. */
    sender_id?: string | undefined;
    /** The name of the speaker. */
    name?: string | undefined;
  };
  /** List facts, or find facts that match a question. */
  "memory.facts": {
    /** The question; empty to list facts. */
    query?: string | undefined;
    /** Facts that were true on this day. */
    as_of?: string | undefined;
    /** Include facts that are no longer true. */
    everything?: boolean | undefined;
    /** At most this many; default 100. */
    limit?: number | undefined;
  };
  /** Return the history of a fact: the facts that it replaced and that replaced it, oldest first. */
  "memory.fact_history": {
    /** A fact's id, or a slot. */
    name: string;
  };
}

/** The names of all operations. */
export const METHODS = [
  "memory.search",
  "memory.nearest",
  "memory.context",
  "memory.get",
  "memory.forget",
  "memory.restore",
  "memory.documents",
  "memory.recent",
  "memory.collections",
  "memory.sources",
  "memory.save",
  "memory.replace",
  "memory.status",
  "memory.doctor",
  "memory.extensions",
  "memory.index",
  "memory.index_state",
  "memory.core_get",
  "memory.core_update",
  "memory.core_delete",
  "memory.tools",
  "memory.tool",
  "memory.rendered",
  "memory.links",
  "memory.chats",
  "memory.messages",
  "memory.append",
  "memory.facts",
  "memory.fact_history",
] as const satisfies readonly (keyof Arguments)[];
