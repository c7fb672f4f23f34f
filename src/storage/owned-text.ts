import { sha256Hex } from '../core/digest.js';

/**
 * The kind of a text in the blob store, for texts that a caller can name by their hash:
 * - `upload`: an attachment that a client has not sent yet, as base64
 * - `attachment`: an attachment of a run's message, as base64
 * - `artifact`: a value that came with a message of a run, as text or JSON
 * - `context`: the context of a run, as JSON
 */
export type OwnedKind = 'upload' | 'attachment' | 'artifact' | 'context';

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
export function ownerBytes(kind: OwnedKind): number {
  return headOf(kind, '').length;
}

const KINDS: readonly OwnedKind[] = ['upload', 'attachment', 'artifact', 'context'];
/** A SHA-256 in hex, and the end of the line. */
const DIGEST_AND_END = 65;

function headOf(kind: OwnedKind, owner: string): string {
  return `perdure ${kind} of ${sha256Hex(owner)}\n`;
}
