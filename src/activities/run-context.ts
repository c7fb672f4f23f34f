import type { BlobStore } from '../blobs/blob-store.js';
import { parseJson, type Json } from '../core/json.js';
import type { BlobRef } from '../core/messages.js';

/** The run's `context`, wherever it lies; null where it has none. */
export async function runContext(
  input: { readonly context?: Json; readonly contextBlob?: BlobRef },
  blobs: BlobStore,
): Promise<Json> {
  if (input.contextBlob === undefined) return input.context ?? null;
  const text = await blobs.get(input.contextBlob);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- stored by loadAgent as JSON
  return (parseJson(text) ?? null) as Json;
}
