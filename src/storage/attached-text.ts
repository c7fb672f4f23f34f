import { randomUUID } from 'node:crypto';
import type { Attachment, BlobRef } from '../core/transcript/messages.js';
import { BlobError, type BlobStore } from './blob-store.js';
import { ownerBytes, ownedText, readOwned } from './owned-text.js';
import { readFor } from './worker-store.js';

/** Thrown for a reference that is not an attachment of this run. */
export class NotAttachedError extends Error {
  override readonly name = 'NotAttachedError';
}

/**
 * Stores base64 text that belongs to no run yet. Its reference is secret: the text includes a
 * random UUID, so the reference cannot be computed, and no history contains it.
 */
export async function storeUpload(blobs: BlobStore, base64: string): Promise<BlobRef> {
  return await blobs.put(ownedText('upload', randomUUID(), base64));
}

/**
 * Stores attachments as texts of one run and returns them with their new references, which no other
 * run can read. Rejects with a `NotAttachedError` if one belongs to another run, or with a
 * `BlobError`.
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

/**
 * Returns the base64 text of a run's attachment. Rejects with a `NotAttachedError` or a
 * `BlobError`.
 */
export async function attachedText(blobs: BlobStore, run: string, ref: BlobRef): Promise<string> {
  const text = readOwned('attachment', run, await blobs.get(ref));
  if (text === null) throw foreign(ref, run);
  return text;
}

/**
 * Copies an attachment or artifact from one of the runs `from` to the run `to`, and returns its
 * reference there. Any other reference is returned unchanged; the run `to` cannot read it. Rejects
 * with a `BlobError`.
 */
export async function copyToRun(
  blobs: BlobStore,
  {
    kind,
    from,
    to,
  }: {
    readonly kind: 'attachment' | 'artifact';
    readonly from: readonly string[];
    readonly to: string;
  },
  ref: BlobRef,
): Promise<BlobRef> {
  const stored = await readFor(`an ${kind}`, ref, blobs).catch((error: unknown) => {
    if (error instanceof BlobError && error.kind === 'invalid') return '';
    throw error;
  });
  const text = from.map((run) => readOwned(kind, run, stored)).find((found) => found !== null);
  return text === undefined ? ref : await blobs.put(ownedText(kind, to, text ?? ''));
}

/** Returns the size of an attachment in bytes; base64 uses four bytes for three. */
export function attachedBytes({ bytes }: BlobRef): number {
  return Math.floor((bytes - ownerBytes('attachment')) * 0.75);
}

function foreign({ sha256 }: BlobRef, run: string): NotAttachedError {
  return new NotAttachedError(
    `attachment ${sha256.slice(0, 12)}… does not belong to run ${JSON.stringify(run)}; attach the bytes to this run`,
  );
}
