import { sha256Hex } from '../../core/digest.js';
import { parseJson, type JsonObject } from '../../core/json.js';
import type { BlobRef, PromptMessage } from '../../core/transcript/messages.js';
import type { ModelRequest } from '../model.js';
import { ModelError } from '../model-error.js';
import type { RequestParameter } from '../parameters.js';
import { sample } from '../sample.js';

export type AssistantPromptMessage = Extract<PromptMessage, { readonly role: 'assistant' }>;

/** The items of a request's messages that are in blobs, by the blob's SHA-256. */
export type StoredItems = ReadonlyMap<string, readonly JsonObject[]>;

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
  api?: 'chat' | 'anthropic',
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
