import { LRUCache } from 'lru-cache';
import type { PromptMessage } from '../../core/transcript/messages.js';
import { chain, FIRST_LINK, promptOf } from '../../core/transcript/transcript.js';

/** A prompt as the workflow names it. */
export interface PromptName {
  /** Namespace and workflow id. */
  readonly run: string;
  readonly upTo: number;
  readonly head: string;
}

/** Asks the workflow for the canonical messages from `from` up to, not including, `to`. */
export type FetchMessages = (from: number, to: number) => Promise<readonly PromptMessage[]>;

export interface TranscriptCache {
  /** The messages of a prompt; asks the workflow only for what is missing here. */
  prompt(name: PromptName, fetch: FetchMessages): Promise<readonly PromptMessage[]>;
  /** A message that this worker has made and the workflow will append at `name.upTo`. */
  noteReply(name: PromptName, reply: PromptMessage): void;
  /** A tool message that this worker has made; its place is known only when all of its batch are. */
  noteResult(run: string, result: PromptMessage & { role: 'tool' }): void;
}

interface Entry {
  messages: PromptMessage[];
  /** `heads[n]` is the digest over the first n messages. */
  heads: string[];
  /** Call id → result, until the prompt that holds it is asked for. */
  readonly loose: Map<string, PromptMessage>;
  bytes: number;
}

/**
 * Prompts kept in the worker's memory, least recently used runs first to go.
 *
 * Nothing in here is trusted: a prompt is served only when the digest over its messages equals the
 * one the workflow named. So a zombie attempt, a reset or a result that was recorded elsewhere can
 * cost a query, and can never put a wrong word into a prompt.
 */
export function createTranscriptCache(options: { maxBytes: number }): TranscriptCache {
  const entries = new LRUCache<string, Entry>({
    maxSize: options.maxBytes,
    sizeCalculation: (entry) => Math.max(1, entry.bytes),
  });
  const keep = (run: string, entry: Entry): void => {
    // Setting the same object again would keep the size it had before.
    entries.delete(run);
    entries.set(run, entry);
  };

  return {
    async prompt(name, fetch) {
      const entry = entries.get(name.run) ?? emptyEntry();
      placeLoose(entry, name.upTo);
      if (entry.heads[name.upTo] !== name.head) await complete(entry, name, fetch);
      keep(name.run, entry);
      return entry.messages.slice(0, name.upTo);
    },
    noteReply(name, reply) {
      const entry = entries.get(name.run);
      if (entry === undefined || entry.heads[name.upTo] !== name.head) return;
      truncate(entry, name.upTo);
      push(entry, reply);
      keep(name.run, entry);
    },
    noteResult(run, result) {
      const entry = entries.get(run);
      if (entry === undefined) return;
      const earlier = entry.loose.get(result.callId);
      entry.loose.set(result.callId, promptOf(result));
      entry.bytes += sizeOf(result) - (earlier === undefined ? 0 : sizeOf(earlier));
      keep(run, entry);
    },
  };
}

/** Fetches the missing end; where that does not fit what is here, fetches it all. */
async function complete(entry: Entry, name: PromptName, fetch: FetchMessages): Promise<void> {
  const known = Math.min(entry.messages.length, name.upTo);
  if (known > 0 && known < name.upTo) {
    for (const message of await fetch(known, name.upTo)) push(entry, message);
    forgetLoose(entry);
    if (entry.heads[name.upTo] === name.head) return;
  }
  const fresh = emptyEntry();
  for (const message of await fetch(0, name.upTo)) push(fresh, message);
  if (fresh.heads[name.upTo] !== name.head) {
    throw new Error(
      `the transcript that ${name.run} tells (${fresh.messages.length} messages) does not have the digest it names`,
    );
  }
  Object.assign(entry, { messages: fresh.messages, heads: fresh.heads, bytes: fresh.bytes });
  entry.loose.clear();
}

/** Puts the results of the last message's calls in their order, when all of them were made here. */
function placeLoose(entry: Entry, upTo: number): void {
  const last = entry.messages.at(-1);
  if (entry.messages.length >= upTo || last?.role !== 'assistant') return;
  const results = (last.calls ?? []).map((call) => entry.loose.get(call.id));
  if (!results.every((result) => result !== undefined)) return;
  forgetLoose(entry);
  for (const result of results) push(entry, result);
}

function forgetLoose(entry: Entry): void {
  for (const result of entry.loose.values()) entry.bytes -= sizeOf(result);
  entry.loose.clear();
}

function emptyEntry(): Entry {
  return { messages: [], heads: [FIRST_LINK], loose: new Map(), bytes: 0 };
}

function push(entry: Entry, message: PromptMessage): void {
  const prompt = promptOf(message);
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
