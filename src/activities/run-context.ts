import { ApplicationFailure } from '@temporalio/common';
import type { BlobStore } from '../storage/blob-store.js';
import { ForeignContextError, readContext } from '../storage/context-text.js';
import type { Json } from '../core/json.js';
import { withTurnContext, type ContextFields } from '../core/input/turn-context.js';

/**
 * Returns the run's `context`, inline or from the blob store, combined with that of the turn; null
 * if there is none. Rejects with a `BlobError`, or with a nonretryable failure if the context
 * belongs to a run that is not a caller of this one.
 */
export async function readRunContext(
  { context = null, contextBlob, turnContext }: ContextFields,
  blobs: BlobStore,
): Promise<Json> {
  if (contextBlob === undefined) return withTurnContext(context, turnContext);
  try {
    return withTurnContext(await readContext(blobs, contextBlob), turnContext);
  } catch (error) {
    if (!(error instanceof ForeignContextError)) throw error;
    throw ApplicationFailure.nonRetryable(error.message, 'ForeignContext');
  }
}
