import { sha256Hex } from '../core/digest.js';
import { isObject, parseJson, type Json, type JsonObject } from '../core/json.js';
import type { BlobRef, PromptMessage, ProviderItems } from '../core/messages.js';
import type { ModelReply, ModelRequest } from './model.js';
import { ModelError } from './model-error.js';
import { sample } from './scrub.js';

/** Between the texts of two messages in one reply. */
export const BETWEEN_MESSAGES = '\n\n';

/** An item of a request or a reply. */
export type Item = Readonly<Record<string, Json | undefined>>;

type Assistant = Extract<PromptMessage, { readonly role: 'assistant' }>;

/** The items of a request's messages that lie in blobs, by the blob's SHA-256. */
export type StoredItems = ReadonlyMap<string, readonly JsonObject[]>;

/** Names who made items: what one model has encrypted, another cannot read. */
export function makerOf({ baseUrl, model }: { baseUrl: string; model: string }): string {
  return sha256Hex(`${baseUrl}\n${model}`).slice(0, 16);
}

/**
 * What of a reply goes back with later requests: its items in their order, where the transcript itself
 * has not all of it. Texts and calls are not kept twice: a message keeps the number of its characters,
 * a call its place. Undefined where texts and calls are all there is.
 */
export function keptItems(output: readonly Item[], from: string): ModelReply['provider'] {
  const wanted = output.filter(isReplayable);
  const isPlain = wanted.every(
    ({ type, phase }) => type === 'function_call' || (type === 'message' && !phase),
  );
  if (isPlain) return undefined;
  let call = 0;
  const items = wanted.map((item): JsonObject => {
    if (item['type'] === 'message') {
      const { content, ...rest } = item;
      return { ...rest, characters: textOfMessage(content).length };
    }
    if (item['type'] !== 'function_call') return item;
    const { call_id: _id, name: _name, arguments: _arguments, ...rest } = item;
    return { ...rest, call: call++ };
  });
  return { from, items };
}

/** What was thought and is neither shown nor encrypted lies with nobody when nothing is stored there. */
function isReplayable({ type, encrypted_content: encrypted, content }: Item): boolean {
  if (type !== 'reasoning') return true;
  return (typeof encrypted === 'string' && encrypted !== '') || Array.isArray(content);
}

export function textOfMessage(content: unknown): string {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  return parts
    .map((part) => {
      if (typeof part === 'string') return part;
      return isObject(part) && typeof part['text'] === 'string' ? part['text'] : '';
    })
    .join('');
}

/** Reads the items that lie in blobs. Rejects with a `ModelError` of kind `retry`. */
export async function readStoredItems(
  { messages, files }: ModelRequest,
  from: string,
): Promise<StoredItems> {
  const blobs = messages.flatMap((message): readonly BlobRef[] => {
    const provider = message.role === 'assistant' ? message.provider : undefined;
    return provider?.blob && provider.from === from ? [provider.blob] : [];
  });
  const read = blobs.map(async (blob) => {
    const text = await files?.(blob).catch((error: unknown) => {
      throw unreadable(error instanceof Error ? error.message : String(error));
    });
    const items = parseJson(text ?? '');
    if (!Array.isArray(items)) throw unreadable(`blob ${blob.sha256} holds no items`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- content-addressed, made by us
    return [blob.sha256, items as readonly JsonObject[]] as const;
  });
  return new Map(await Promise.all(read));
}

function unreadable(why: string): ModelError {
  const message = `What the model's provider wants back of an earlier reply cannot be read: ${sample(why)}`;
  return new ModelError(message, { kind: 'retry', type: 'items_unreadable' });
}

/** An assistant's message as items: those of the provider where it is who made them. */
export function assistantItems(
  message: Assistant,
  { from, stored }: { readonly from: string | null; readonly stored: StoredItems },
): readonly Item[] {
  const { provider } = message;
  const plain = [...said(message.text), ...(message.calls ?? []).map(calling)];
  if (provider === undefined || provider.from !== from) return plain;
  const items = itemsOf(provider, stored);
  return items === undefined ? plain : followed(filled(message, items));
}

function itemsOf({ items, blob }: ProviderItems, stored: StoredItems) {
  return items ?? (blob && stored.get(blob.sha256));
}

function said(text: string): readonly Item[] {
  return text === '' ? [] : [{ type: 'message', role: 'assistant', content: text }];
}

function calling(call: NonNullable<Assistant['calls']>[number]): Item {
  return {
    type: 'function_call',
    call_id: call.id,
    name: call.name,
    arguments: call.arguments,
  };
}

/** The kept items with the transcript's own texts and calls in their places. */
function filled({ text, calls = [] }: Assistant, items: readonly JsonObject[]): readonly Item[] {
  const texts = divided(text, items.filter(isMessage).map(charactersOf));
  const named = new Set(items.map(({ call }) => call));
  let at = 0;
  const made = items.flatMap((item): readonly Item[] => {
    if (isMessage(item)) {
      const part = texts[at++] ?? '';
      if (part === '') return [];
      const { characters: _, ...rest } = item;
      return [{ ...rest, content: [{ type: 'output_text', text: part, annotations: [] }] }];
    }
    if (item['type'] !== 'function_call') return [item];
    const { call: index, ...rest } = item;
    const call = typeof index === 'number' ? calls[index] : undefined;
    return call === undefined ? [] : [{ ...rest, ...calling(call) }];
  });
  const left = calls.filter((_, index) => !named.has(index));
  return [...(texts.length === 0 ? said(text) : []), ...made, ...left.map(calling)];
}

function isMessage({ type }: JsonObject): boolean {
  return type === 'message';
}

function charactersOf({ characters }: JsonObject): number {
  return typeof characters === 'number' ? characters : 0;
}

/** A text that was cut, or has a note of ours, cannot be divided any more: the first message has it all. */
function divided(text: string, lengths: readonly number[]): readonly string[] {
  const spoken = lengths.filter((length) => length > 0);
  const between = BETWEEN_MESSAGES.length * Math.max(0, spoken.length - 1);
  const whole = spoken.reduce((sum, length) => sum + length, between);
  if (whole !== text.length) return lengths.map((_, index) => (index === 0 ? text : ''));
  let from = 0;
  return lengths.map((length) => {
    const part = text.slice(from, from + length);
    if (length > 0) from += length + BETWEEN_MESSAGES.length;
    return part;
  });
}

/** What was thought belongs to what came of it; the API refuses it alone. */
function followed(items: readonly Item[]): readonly Item[] {
  const last = items.findLastIndex(({ type }) => type !== 'reasoning');
  return items.slice(0, last + 1);
}
