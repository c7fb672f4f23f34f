import { LRUCache } from 'lru-cache';
import { parseJson } from '../../core/text/json.js';
import type { Message, PromptMessage } from '../../core/transcript/messages.js';
import {
  FIRST_LINK,
  type PromptChunk,
  chain,
  toPromptMessage,
} from '../../core/transcript/transcript.js';
import { type BlobStore, StoreFault, readFor } from '../../storage/blob-store.js';

/** The name by which the workflow refers to a prompt. */
export interface PromptKey {
  /** Namespace and workflow id. */
  readonly run: string;
  /** The number of messages. */
  readonly upTo: number;
  /** The digest over these messages. */
  readonly head: string;
}

/** Queries the workflow for the canonical messages from `from` up to, but not including, `to`. */
type FetchMessages = (from: number, to: number) => Promise<readonly PromptMessage[]>;

export interface TranscriptCache {
  /**
   * Returns the messages of a prompt, and fetches only missing ones. Rejects if the fetched
   * messages do not match the name's digest.
   */
  prompt(name: PromptKey, fetch: FetchMessages): Promise<readonly PromptMessage[]>;
  /** Adds the text with which a run's conversation probably begins, if the run is not cached yet. */
  noteFirst(run: string, text: string): void;
  /** Adds a message from this worker that the workflow will append at `name.upTo`. */
  noteReply(name: PromptKey, reply: PromptMessage): void;
  /** Whether the run's newest cached message is the reply that made this call. */
  hasReply(run: string, callId: string): boolean;
  /** Adds a tool message from this worker. Its place is known once its whole batch is cached. */
  noteResult(run: string, result: PromptMessage & { role: 'tool' }): void;
}

interface Entry {
  messages: PromptMessage[];
  /** `heads[n]` is the digest over the first n messages. */
  heads: string[];
  /** Results by call id, until a prompt that includes them is requested. */
  readonly unplaced: Map<string, PromptMessage>;
  bytes: number;
}

/**
 * Creates a cache of prompts in the worker's memory. At `maxBytes`, it evicts the least recently
 * used runs.
 *
 * A prompt is served only if the digest of its messages equals the workflow's. An attempt that
 * timed out, a reset, or a result from another worker can therefore only cost a query: a prompt is
 * never wrong.
 */
export function createTranscriptCache(options: { maxBytes: number }): TranscriptCache {
  const entries = new LRUCache<string, Entry>({
    maxSize: options.maxBytes,
    sizeCalculation: (entry) => Math.max(1, entry.bytes),
  });
  const save = (run: string, entry: Entry): void => {
    // If the same object is set again, the cache keeps its earlier size.
    entries.delete(run);
    entries.set(run, entry);
  };

  return {
    async prompt(name, fetch) {
      const entry = entries.get(name.run) ?? emptyEntry();
      placeResults(entry, name.upTo);
      if (entry.heads[name.upTo] !== name.head) await complete(entry, name, fetch);
      save(name.run, entry);
      return entry.messages.slice(0, name.upTo);
    },
    noteFirst(run, text) {
      if (entries.has(run)) return;
      const entry = emptyEntry();
      push(entry, { role: 'user', text });
      save(run, entry);
    },
    noteReply(name, reply) {
      const entry = entries.get(name.run);
      if (entry === undefined || entry.heads[name.upTo] !== name.head) return;
      truncate(entry, name.upTo);
      push(entry, reply);
      save(name.run, entry);
    },
    hasReply(run, callId) {
      const last = entries.peek(run)?.messages.at(-1);
      return last?.role === 'assistant' && last.calls?.some(({ id }) => id === callId) === true;
    },
    noteResult(run, result) {
      const entry = entries.get(run);
      if (entry === undefined) return;
      const earlier = entry.unplaced.get(result.callId);
      entry.unplaced.set(result.callId, toPromptMessage(result));
      entry.bytes += sizeOf(result) - (earlier === undefined ? 0 : sizeOf(earlier));
      save(run, entry);
    },
  };
}

/** Fetches the missing end of a prompt. If the digest then differs, fetches the whole prompt. */
async function complete(entry: Entry, name: PromptKey, fetch: FetchMessages): Promise<void> {
  const known = Math.min(entry.messages.length, name.upTo);
  if (known > 0 && known < name.upTo) {
    for (const message of await fetch(known, name.upTo)) push(entry, message);
    dropUnplaced(entry);
    if (entry.heads[name.upTo] === name.head) return;
  }
  const fresh = emptyEntry();
  for (const message of await fetch(0, name.upTo)) push(fresh, message);
  if (fresh.heads[name.upTo] !== name.head) {
    throw new Error(
      `transcript of ${name.run}: expected the digest ${name.head}, got another one for ${fresh.messages.length} messages`,
    );
  }
  Object.assign(entry, { messages: fresh.messages, heads: fresh.heads, bytes: fresh.bytes });
  entry.unplaced.clear();
}

/** Appends the results of the last message's calls in order, if all of them are cached. */
function placeResults(entry: Entry, upTo: number): void {
  const last = entry.messages.at(-1);
  if (entry.messages.length >= upTo || last?.role !== 'assistant') return;
  const results = (last.calls ?? []).map((call) => entry.unplaced.get(call.id));
  if (!results.every((result) => result !== undefined)) return;
  dropUnplaced(entry);
  for (const result of results) push(entry, result);
}

function dropUnplaced(entry: Entry): void {
  for (const result of entry.unplaced.values()) entry.bytes -= sizeOf(result);
  entry.unplaced.clear();
}

function emptyEntry(): Entry {
  return { messages: [], heads: [FIRST_LINK], unplaced: new Map(), bytes: 0 };
}

function push(entry: Entry, message: PromptMessage): void {
  const prompt = toPromptMessage(message);
  entry.heads.push(chain(entry.heads.at(-1) ?? '', prompt));
  entry.messages.push(prompt);
  entry.bytes += sizeOf(prompt);
}

function truncate(entry: Entry, length: number): void {
  for (const dropped of entry.messages.slice(length)) entry.bytes -= sizeOf(dropped);
  entry.messages.length = length;
  entry.heads.length = length + 1;
}

function sizeOf(message: PromptMessage): number {
  const { calls = [], provider } = message.role === 'assistant' ? message : {};
  const items = provider?.items === undefined ? 0 : JSON.stringify(provider.items).length;
  const text = message.text.length + items + 200;
  return calls.reduce((sum, call) => sum + call.arguments.length + 200, text);
}

/** Returns a part of a prompt as it is stored in the blob store: one JSON line per message. */
export function formatChunk(messages: readonly Message[]): string {
  return messages.map((message) => JSON.stringify(message)).join('\n');
}

/** Reads a part of a prompt. Rejects with a `StoreFault` if the blob is unreadable or damaged. */
export async function readChunk(
  { blob, count }: PromptChunk,
  blobs: BlobStore,
): Promise<readonly Message[]> {
  const lines = (await readFor('an earlier part of the conversation', blob, blobs)).split('\n');
  if (lines.length !== count) {
    const { sha256 } = blob;
    const message = `an earlier part of the conversation cannot be read: blob ${sha256} has ${lines.length} messages, and the run expects ${count}; restore it from a backup`;
    throw new StoreFault(message, { kind: 'damaged', sha256 });
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- content-addressed, written above
  return lines.map((line) => parseJson(line) as Message);
}
