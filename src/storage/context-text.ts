import { parseJson, type Json } from '../core/json.js';
import type { BlobRef, ContextRef } from '../core/transcript/messages.js';
import type { BlobStore } from './blob-store.js';
import { ownedText, readOwned } from './owned-text.js';
import { readFor } from './worker-store.js';

/** Thrown for a reference that is not the context of this run or of the run at its root. */
export class ForeignContextError extends Error {
  override readonly name = 'ForeignContextError';
}

/**
 * Stores the context of a run. `root` is the id of its topmost caller, or its own. Rejects with a
 * `BlobError`.
 */
export async function storeContext(
  blobs: BlobStore,
  { context, root }: { readonly context: Json; readonly root: string },
): Promise<BlobRef> {
  return await blobs.put(ownedText('context', root, JSON.stringify(context)));
}

/**
 * Returns the context to which a run has a reference. Rejects with a `ForeignContextError` or a
 * `BlobError`.
 */
export async function readContext(blobs: BlobStore, ref: ContextRef): Promise<Json> {
  const stored = await readFor("the run's context", ref, blobs);
  const text = ref.root === undefined ? null : readOwned('context', ref.root, stored);
  if (text === null) {
    throw new ForeignContextError(
      `contextBlob: ${ref.sha256.slice(0, 12)}… is not the context of this run; give the context itself`,
    );
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- stored above as JSON
  return (parseJson(text) ?? null) as Json;
}
