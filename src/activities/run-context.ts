import { ApplicationFailure } from '@temporalio/common';
import type { BlobStore } from '../storage/blob-store.js';
import { ForeignContextError, readContext } from '../storage/context-text.js';
import type { Json } from '../core/json.js';
import type { ContextRef } from '../core/transcript/messages.js';

/**
 * The run's `context`, wherever it lies; null where it has none. Rejects with a `BlobError`, and for the
 * context of a run that is not this one's caller with a failure that no further attempt changes.
 */
export async function runContext(
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
