import { ApplicationFailure } from '@temporalio/common';
import type { BlobStore } from '../storage/blob-store.js';
import { ForeignContextError, readContext } from '../storage/context-text.js';
import type { Json } from '../core/json.js';
import type { ContextRef } from '../core/transcript/messages.js';

/**
 * Returns the run's `context`, inline or from the blob store; null if it has none. Rejects with a
 * `BlobError`, or with a failure that is not retried if the context belongs to a run that is not a caller
 * of this one.
 */
export async function readRunContext(
  input: { readonly context?: Json; readonly contextBlob?: ContextRef },
  blobs: BlobStore,
): Promise<Json> {
  if (input.contextBlob === undefined) return input.context ?? null;
  try {
    return await readContext(blobs, input.contextBlob);
  } catch (error) {
    if (!(error instanceof ForeignContextError)) throw error;
    throw ApplicationFailure.nonRetryable(error.message, 'ForeignContext');
  }
}
