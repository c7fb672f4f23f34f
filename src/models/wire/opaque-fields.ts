import { type JsonObject, isObject, parseJson, sha256Hex } from '../../core/text/json.js';
import type { BlobRef, PromptMessage } from '../../core/transcript/messages.js';
import { ModelError, type ModelRequest, type RequestParameter, sample } from '../model.js';

/**
 * Fields of a provider's values that perdure does not know. They are stored with a message and go
 * back to the model that made them, unchanged.
 */
type OpaqueFields = Readonly<Record<string, unknown>>;

/** Returns the fields that are not in `known` and hold anything; undefined if there are none. */
export function pickOpaque(
  value: OpaqueFields,
  known: ReadonlySet<string>,
): JsonObject | undefined {
  const entries = Object.entries(value).filter(
    ([key, field]) => !known.has(key) && key !== '__proto__' && hasContent(field),
  );
  if (entries.length === 0) return undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  return Object.fromEntries(entries) as JsonObject;
}

function hasContent(field: unknown): boolean {
  if (field === undefined || field === null || field === '') return false;
  if (Array.isArray(field)) return field.length > 0;
  return !isObject(field) || Object.keys(field).length > 0;
}

/** Fields that each delta repeats whole. */
const REPEATED = new Set([
  'type',
  'id',
  'index',
  'format',
  'role',
  'name',
  'object',
  'model',
  'provider',
  'status',
  'thought_signature',
]);

const MAX_DEPTH = 32;
/** Maximum entries of one streamed list. */
const MAX_ENTRIES = 1_000;
/** A text of at least this length that arrives twice is a repetition, not its own continuation. */
const MIN_REPETITION = 16;

/**
 * Returns a streamed value with its next delta: texts are joined, objects merged, and entries of
 * lists found by their `index`, else added. It may change and return `whole`.
 */
export function mergeDelta(whole: unknown, delta: unknown, key = '', depth = 0): unknown {
  if (delta === undefined || delta === null) return whole;
  if (whole === undefined || whole === null || depth > MAX_DEPTH) return delta;
  if (typeof whole === 'string' && typeof delta === 'string') return joinTexts(whole, delta, key);
  if (Array.isArray(whole) && Array.isArray(delta)) {
    for (const entry of delta) mergeEntry(whole, entry, depth + 1);
    return whole;
  }
  if (!isObject(whole) || !isObject(delta)) return delta;
  for (const [name, field] of Object.entries(delta)) {
    if (name !== '__proto__') whole[name] = mergeDelta(whole[name], field, name, depth + 1);
  }
  return whole;
}

function joinTexts(whole: string, delta: string, key: string): string {
  if (REPEATED.has(key)) return delta === '' ? whole : delta;
  const isRepetition = delta.length >= MIN_REPETITION && delta === whole;
  return isRepetition ? whole : whole + delta;
}

function mergeEntry(list: unknown[], entry: unknown, depth: number): void {
  const begun = isObject(entry) ? findBegun(list, entry) : undefined;
  if (begun !== undefined) mergeDelta(begun, entry, '', depth);
  else if (list.length < MAX_ENTRIES) list.push(entry);
}

/** Returns the entry that another one continues; without an `index`, only the last one can be. */
function findBegun(list: readonly unknown[], entry: OpaqueFields): unknown {
  if (entry['index'] === undefined) {
    const last = list.at(-1);
    return isObject(last) && mayContinue(last, entry) && !isSealed(last, entry) ? last : undefined;
  }
  return list.findLast(
    (one) => isObject(one) && one['index'] === entry['index'] && mayContinue(one, entry),
  );
}

/** Whether two entries can be parts of one: neither their types nor their ids differ. */
function mayContinue(begun: OpaqueFields, entry: OpaqueFields): boolean {
  return ['type', 'id'].every((key) => {
    const [own, other] = [begun[key] ?? undefined, entry[key] ?? undefined];
    return own === undefined || other === undefined || own === other;
  });
}

/** Whether an entry is complete: signed, or encrypted as a whole. */
function isSealed(begun: OpaqueFields, entry: OpaqueFields): boolean {
  if (typeof begun['data'] === 'string' && begun['data'] !== '') {
    return begun['data'] !== entry['data'];
  }
  return typeof begun['signature'] === 'string' && begun['signature'] !== '';
}

export type AssistantPromptMessage = Extract<PromptMessage, { readonly role: 'assistant' }>;

/** The items of a request's messages that are in blobs, by the blob's SHA-256. */
type StoredItems = ReadonlyMap<string, readonly JsonObject[]>;

/** Which provider items go back with the messages of a request. */
export interface Replay {
  /** Only items of this maker; null: none. */
  readonly from: string | null;
  readonly stored: StoredItems;
}

export const NO_REPLAY: Replay = { from: null, stored: new Map() };

/**
 * Returns the name of the maker of items: one model cannot read the encrypted items of another.
 * `api` is set for protocols whose items differ from those of Responses.
 */
export function getMaker(
  { baseUrl, model }: { baseUrl: string; model: string },
  api?: 'chat' | 'anthropic' | 'ai-sdk',
) {
  const name = api === undefined ? '' : `${api}\n`;
  return sha256Hex(`${name}${baseUrl}\n${model}`).slice(0, 16);
}

/** Returns the items that go back with a message; undefined if it has none, or another maker's. */
export function getReplayedItems(
  { provider }: AssistantPromptMessage,
  { from, stored }: Replay,
): readonly JsonObject[] | undefined {
  if (provider === undefined || provider.from !== from) return undefined;
  const { items, blob } = provider;
  return items ?? (blob && stored.get(blob.sha256));
}

/** Returns the fields of items that a server has refused one by one. */
export function listRefusedFields(without: readonly RequestParameter[]): ReadonlySet<string> {
  const prefix = 'provider_items.';
  return new Set(
    without.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)),
  );
}

/** Reads the items in blobs. Rejects with a `ModelError` of kind `retry`. */
export async function readStoredItems(
  { messages, files }: ModelRequest,
  from: string,
): Promise<StoredItems> {
  const blobs = messages.flatMap((message): readonly BlobRef[] => {
    const provider = message.role === 'assistant' ? message.provider : undefined;
    return provider?.blob && provider.from === from ? [provider.blob] : [];
  });
  const pairs = blobs.map(async (blob) => {
    const text = await files?.(blob).catch((error: unknown) => {
      throw unreadable(error instanceof Error ? error.message : String(error), error);
    });
    const items = parseJson(text ?? '');
    if (!Array.isArray(items)) throw unreadable(`blob ${blob.sha256} contains no items`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- content-addressed, made by us
    return [blob.sha256, items as readonly JsonObject[]] as const;
  });
  return new Map(await Promise.all(pairs));
}

function unreadable(reason: string, cause?: unknown): ModelError {
  const message = `The provider's items of an earlier reply cannot be read: ${sample(reason)}`;
  return new ModelError(message, { kind: 'retry', type: 'items_unreadable', cause });
}
