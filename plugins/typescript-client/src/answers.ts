/** The answers of klaw serve. Times are ISO 8601 strings, with a time zone. */

/** A value of metadata, as front matter has it. */
export type MetadataValue = string | number | boolean | null | readonly MetadataValue[];
export type Metadata = Readonly<Record<string, MetadataValue>>;

/** The class of who wrote a text. No text can set it. */
export type Trust = "owner" | "agent" | "foreign";

/** One component's part in a score: that of a retriever, or of a reranking stage. */
export interface Contribution {
  component: string;
  rank: number;
  raw: number;
  weight: number;
  value: number;
}

/** A found chunk: lines `start_line` to `end_line` of the document at `path`. */
export interface SearchResult {
  content: string;
  path: string;
  start_line: number;
  end_line: number;
  /** The headings above the chunk, the outermost first. */
  heading: string[];
  /** Comparable only within one search. */
  score: number;
  /** How likely the chunk answers the question, from 0 to 1; null if unknown. */
  relevance: number | null;
  /** Whether it most likely does not answer the question. */
  is_weak: boolean;
  source: string;
  origin: string;
  collection: string;
  created_at: string;
  chunk_id: string;
  chat_id: string | null;
  metadata: Metadata;
  explain: Contribution[];
  /** The text just before the chunk. */
  context: string;
  similarity: number | null;
  /** Other places of the same document that match. */
  also: string[];
  trust: Trust;
  /** What the note's directory is, as its owner describes it. */
  about?: string;
}

export interface SearchAnswer {
  results: SearchResult[];
  notices: string[];
}

export interface ContextAnswer {
  /** Markdown for a prompt; empty if nothing fits. */
  context: string;
  tokens: number;
  sources: string[];
  notices: string[];
}

/** Lines of a document. */
export interface Excerpt {
  path: string;
  content: string;
  start_line: number;
  end_line: number;
  /** Where its file is on the server's machine; null for a saved memory. */
  file: string | null;
  notice: string;
  trust: Trust;
}

export interface ForgetReport {
  paths: string[];
  chunks: number;
}

export interface SkippedEntry {
  path: string;
  reason: string;
  keep: boolean;
}

export interface IndexReport {
  added: number;
  changed: number;
  unchanged: number;
  removed: number;
  skipped: SkippedEntry[];
  chunks: number;
  embedded: number;
  cached: number;
  lacking: number;
  notices: string[];
  seconds: number;
}

export interface Progress {
  stage: string;
  done: number;
  total: number;
  documents: number;
  chunks: number;
}

export type IndexState =
  | { state: "idle" }
  | { state: "running"; progress: Progress | null }
  | { state: "done"; report: IndexReport }
  | { state: "failed"; error: string; hint?: string };

export interface DocumentRecord {
  path: string;
  origin: string;
  content_hash: string;
  created_at: string;
  seen: string;
}

export interface ListedDocument {
  path: string;
  origin: string;
  collection: string;
  created_at: string;
  source: string;
  chat_id: string | null;
  title: string;
  preview: string;
  chunks: number;
}

export interface SourceStatus {
  origin: string;
  collection: string;
  root: string | null;
  can_forget: boolean;
  configured: boolean;
}

export interface Replaced {
  path: string;
  notice: string;
  replaced: { path: string; text: string; tags: string[]; created_at: string };
}

export interface Status {
  location: string;
  embedder: string;
  space: { [name: string]: unknown } | null;
  retrievers: string[];
  fusion: string;
  origins: Record<string, { documents: number; chunks: number }>;
  collections: Record<string, string[]>;
  workspaces: Record<string, string>;
  excluded: Record<string, number>;
  statistics: Record<string, number | string>;
  problems: string[];
  skipped: Record<string, SkippedEntry[]>;
  elsewhere: Record<string, string>;
}

export interface Finding {
  check: string;
  severity: "error" | "warning" | "note";
  what: string;
  where: string;
  hint: string;
  items: string[];
  fixed: boolean;
}

export interface CoreMemory {
  user: Record<string, string>;
  agent: Record<string, string>;
}

/** A tool that a language model can be offered; `input_schema` is a JSON Schema. */
export interface ToolDescription {
  name: string;
  description: string;
  input_schema: { [name: string]: unknown };
}

/** A node of a document as a tree: a text, or a tag, its attributes and the nodes in it, which are of this type, too. */
export type Block = string | [tag: string, attributes: { [name: string]: unknown }, ...inner: unknown[]];

export interface RenderedDocument {
  path: string;
  content: string;
  start_line: number;
  file: string | null;
  notice: string;
  created_at: string | null;
  origin: string | null;
  tags: string[];
  versions: { path: string; created_at: string; text: string; current: boolean }[];
  /** Null if the document is not Markdown, or too long. */
  blocks: Block[] | null;
}

export interface Chat {
  name: string;
  first_day: string;
  last_day: string;
  days: number;
}

export interface Message {
  id: string;
  ts: string;
  role: "user" | "assistant" | "system" | "tool";
  content: string;
  type: string | null;
  meta: Record<string, unknown>;
}

/** Where a fact was said: characters `start` to `end` of a message. */
export interface Quote {
  chat: string;
  message: string;
  start: number;
  end: number;
  [name: string]: unknown;
}

export interface Fact {
  id: string;
  text: string;
  subject: string;
  person: string;
  counts_as: string;
  category: string;
  slot: string | null;
  value: string | null;
  importance: number;
  tags: string[];
  metadata: Metadata;
  quotes: Quote[];
  valid_from: string | null;
  valid_to: string | null;
  precision: string;
  end_precision: string;
  recorded_at: string | null;
  ended_at: string | null;
  retracted_at: string | null;
  confirmed_at: string | null;
  confirmations: number;
  verified: string;
  made_by: string;
  batch: string | null;
  source: string;
  said_at: string | null;
  affirmed_at: string | null;
  is_pinned: boolean;
  is_archived: boolean;
  ended_by: string | null;
  end_reason: string;
  supersedes: string[];
  trust: Trust;
  /** Only of facts that were found by a question. */
  relevance?: number | null;
  is_weak?: boolean;
}

/** A link of `path`, in `line` (null in front matter), to the document `target`. */
export interface Edge {
  path: string;
  line: number | null;
  target: string;
  heading: string;
  kind: string;
}

export interface BrokenLink {
  path: string;
  line: number | null;
  target: string;
  reason: string;
  kind: string;
}

export interface DocumentLinks {
  path: string;
  to: Edge[];
  backlinks: Edge[];
  broken: BrokenLink[];
}

/** The answer of each operation, by its name. */
export interface Answers {
  "memory.search": SearchAnswer;
  "memory.nearest": { nearest: number | null };
  "memory.context": ContextAnswer;
  "memory.get": Excerpt;
  "memory.forget": ForgetReport;
  "memory.restore": IndexReport;
  "memory.links": DocumentLinks;
  "memory.documents": { documents: DocumentRecord[]; after: string | null };
  "memory.recent": { documents: ListedDocument[] };
  "memory.collections": { collections: string[]; searched: string[] };
  "memory.sources": { sources: SourceStatus[] };
  "memory.save": Excerpt;
  "memory.replace": Replaced;
  "memory.status": Status;
  "memory.doctor": { findings: Finding[] };
  "memory.extensions": { facts: boolean };
  "memory.index": IndexState;
  "memory.index_state": IndexState;
  "memory.core_get": CoreMemory;
  "memory.core_update": CoreMemory;
  "memory.core_delete": CoreMemory;
  "memory.tools": { tools: ToolDescription[] };
  "memory.tool": { [name: string]: unknown };
  "memory.rendered": RenderedDocument;
  "memory.chats": { chats: Chat[] };
  "memory.messages": { messages: Message[] };
  "memory.append": Message;
  "memory.facts": { facts: Fact[]; notices: string[] };
  "memory.fact_history": { facts: Fact[] };
}
