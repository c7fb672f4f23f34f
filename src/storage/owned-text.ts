import { randomUUID } from 'node:crypto';
import { type Json, parseJson, sha256Hex } from '../core/text/json.js';
import type { Attachment, BlobRef, ContextRef } from '../core/transcript/messages.js';
import { BlobError, type BlobStore, blobsOfRun, readFor } from './blob-store.js';

/**
 * The kind of a text in the blob store, for texts that a caller can name by their hash:
 * - `upload`: an attachment that a client has not sent yet, as base64
 * - `attachment`: an attachment of a run's message, as base64
 * - `artifact`: a value that came with a message of a run, as text or JSON
 * - `context`: the context of a run, as JSON
 */
type OwnedKind = 'upload' | 'attachment' | 'artifact' | 'context';

/**
 * Returns a text with a head: its kind and a digest of its owner. The hash covers the head, so the
 * hash of another owner's text, or of a text without an owner, grants no access.
 */
export function ownedText(kind: OwnedKind, owner: string, text: string): string {
  return headOf(kind, owner) + text;
}

/** Returns the text if it has this kind and owner (null: any owner), else null. */
export function readOwned(kind: OwnedKind, owner: string | null, stored: string): string | null {
  const bytes = ownerBytes(kind);
  if (
    !stored.startsWith(headOf(kind, '').slice(0, -DIGEST_AND_END)) ||
    stored[bytes - 1] !== '\n'
  ) {
    return null;
  }
  if (owner !== null && !stored.startsWith(headOf(kind, owner))) return null;
  return stored.slice(bytes);
}

/** Returns whether a text has an owner. A tool's result never has one. */
export function isOwned(stored: string): boolean {
  return KINDS.some((kind) => readOwned(kind, null, stored) !== null);
}

/** Returns the size of the head in bytes, which is the same for every owner. */
function ownerBytes(kind: OwnedKind): number {
  return headOf(kind, '').length;
}

const KINDS: readonly OwnedKind[] = ['upload', 'attachment', 'artifact', 'context'];
/** A SHA-256 in hex, and the end of the line. */
const DIGEST_AND_END = 65;

function headOf(kind: OwnedKind, owner: string): string {
  return `perdure ${kind} of ${sha256Hex(owner)}\n`;
}

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
  const own = blobsOfRun(blobs, run);
  return await Promise.all(
    attachments.map(async (attachment) => {
      if ('url' in attachment) return attachment;
      const stored = await blobs.get(attachment.blob);
      if (readOwned('attachment', run, stored) !== null) return attachment;
      const upload = readOwned('upload', null, stored);
      if (upload === null) throw foreign(attachment.blob, run);
      return { ...attachment, blob: await own.put(ownedText('attachment', run, upload)) };
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
  if (text === undefined) return ref;
  return await blobsOfRun(blobs, to).put(ownedText(kind, to, text ?? ''));
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
  return await blobsOfRun(blobs, root).put(ownedText('context', root, JSON.stringify(context)));
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
