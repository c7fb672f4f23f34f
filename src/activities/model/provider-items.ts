import { setTimeout as pause } from 'node:timers/promises';
import { BlobError, type BlobStore } from '../../storage/blob-store.js';
import type { ProviderItems } from '../../core/transcript/messages.js';
import type { ModelReply } from '../../models/model.js';

/** More goes to the blob store: nothing over 256 KiB enters the history with the rest of a reply. */
const INLINE_BYTES = 32 * 1024;
/** No honest reply has as much; it would be sent again with every request. */
const MOST_BYTES = 8 * 1024 * 1024;
/** Waits before the store is asked again, in milliseconds. */
const AGAIN_MS = [100, 500, 1_500];

/**
 * What the provider wants back with a reply, as the history keeps it. The reply has been paid for: what
 * cannot be kept is left out, and later requests are made without it.
 */
export async function keepItems(
  { provider }: ModelReply,
  blobs: BlobStore,
): Promise<ProviderItems | undefined> {
  if (provider === undefined || provider.items.length === 0) return undefined;
  const { from, items } = provider;
  const json = JSON.stringify(items);
  const bytes = Buffer.byteLength(json);
  if (bytes <= INLINE_BYTES) return { from, items };
  if (bytes > MOST_BYTES) return undefined;
  for (const waitMs of [0, ...AGAIN_MS]) {
    if (waitMs > 0) await pause(waitMs);
    try {
      return { from, blob: await blobs.put(json) };
    } catch (error) {
      if (!(error instanceof BlobError)) throw error;
    }
  }
  return undefined;
}
