import { sha256Hex } from '../../core/digest.js';
import { parseJson, type JsonObject } from '../../core/json.js';
import type { BlobRef, PromptMessage } from '../../core/transcript/messages.js';
import type { ModelRequest } from '../model.js';
import { ModelError } from '../model-error.js';
import { sample } from '../sample.js';

type Assistant = Extract<PromptMessage, { readonly role: 'assistant' }>;

/** The items of a request's messages that lie in blobs, by the blob's SHA-256. */
export type StoredItems = ReadonlyMap<string, readonly JsonObject[]>;

/** Whose items go back with a request; null: nobody's. */
export interface Returning {
  readonly from: string | null;
  readonly stored: StoredItems;
}

/** Nothing goes back. */
export const NOTHING_BACK: Returning = { from: null, stored: new Map() };

/**
 * Names who made items: what one model has encrypted, another cannot read. `api`: the protocol, where
 * it is not the Responses API, for each has a form of its own.
 */
export function makerOf(
  { baseUrl, model }: { baseUrl: string; model: string },
  api?: 'chat',
): string {
  const name = api === undefined ? '' : `${api}\n`;
  return sha256Hex(`${name}${baseUrl}\n${model}`).slice(0, 16);
}

/** What goes back with a message; undefined where it has nothing, or it is another's. */
export function itemsFrom(
  { provider }: Assistant,
  { from, stored }: Returning,
): readonly JsonObject[] | undefined {
  if (provider === undefined || provider.from !== from) return undefined;
  const { items, blob } = provider;
  return items ?? (blob && stored.get(blob.sha256));
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
      throw unreadable(error instanceof Error ? error.message : String(error), error);
    });
    const items = parseJson(text ?? '');
    if (!Array.isArray(items)) throw unreadable(`blob ${blob.sha256} holds no items`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- content-addressed, made by us
    return [blob.sha256, items as readonly JsonObject[]] as const;
  });
  return new Map(await Promise.all(read));
}

function unreadable(why: string, cause?: unknown): ModelError {
  const message = `What the model's provider wants back of an earlier reply cannot be read: ${sample(why)}`;
  return new ModelError(message, { kind: 'retry', type: 'items_unreadable' }, { cause });
}
