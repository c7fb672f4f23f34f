import { randomUUID } from 'node:crypto';
import type { Attachment, BlobRef } from '../core/transcript/messages.js';
import { BlobError, type BlobStore } from './blob-store.js';
import { headBytes, ownedText, readOwned } from './owned-text.js';
import { readFor } from './worker-store.js';

/** What was attached belongs to another run, or is nothing that was attached. */
export class NotAttachedError extends Error {
  override readonly name = 'NotAttachedError';
}

/**
 * Stores base64 text that belongs to no run yet. Its reference is a secret: with a random number in the
 * text nobody can compute it, and no history ever holds it.
 */
export async function storeUpload(blobs: BlobStore, base64: string): Promise<BlobRef> {
  return await blobs.put(ownedText('upload', randomUUID(), base64));
}

/**
 * The same attachments as texts of this one run, whose reference is worth nothing to any other run.
 * Rejects with a `NotAttachedError` for what belongs to another run, and with a `BlobError`.
 */
export async function bindAttachments(
  blobs: BlobStore,
  run: string,
  attachments: readonly Attachment[],
): Promise<readonly Attachment[]> {
  return await Promise.all(
    attachments.map(async (attachment) => {
      if ('url' in attachment) return attachment;
      const stored = await blobs.get(attachment.blob);
      if (readOwned('attachment', run, stored) !== null) return attachment;
      const upload = readOwned('upload', null, stored);
      if (upload === null) throw foreign(attachment.blob, run);
      return { ...attachment, blob: await blobs.put(ownedText('attachment', run, upload)) };
    }),
  );
}

/** The base64 text of what is attached in a run. Rejects with a `NotAttachedError` and a `BlobError`. */
export async function attachedText(blobs: BlobStore, run: string, ref: BlobRef): Promise<string> {
  const text = readOwned('attachment', run, await blobs.get(ref));
  if (text === null) throw foreign(ref, run);
  return text;
}

/**
 * What is attached in one of the runs `from`, attached in the run `to` too. What is not keeps its reference,
 * which the run `to` cannot read. Rejects with a `BlobError` for what cannot be read now.
 */
export async function handOn(
  blobs: BlobStore,
  { from, to }: { readonly from: readonly string[]; readonly to: string },
  ref: BlobRef,
): Promise<BlobRef> {
  const stored = await readFor('an attachment', ref, blobs).catch((error: unknown) => {
    if (error instanceof BlobError && error.kind === 'invalid') return '';
    throw error;
  });
  const text = from.map((run) => readOwned('attachment', run, stored)).find((one) => one !== null);
  return text === undefined ? ref : await blobs.put(ownedText('attachment', to, text ?? ''));
}

/** Size of what was attached. Base64 takes four bytes for three. */
export function attachedBytes({ bytes }: BlobRef): number {
  return Math.floor((bytes - headBytes('attachment')) * 0.75);
}

function foreign({ sha256 }: BlobRef, run: string): NotAttachedError {
  return new NotAttachedError(
    `attachment ${sha256.slice(0, 12)}… does not belong to run ${JSON.stringify(run)}; attach the bytes to this run`,
  );
}
