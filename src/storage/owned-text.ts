import { sha256Hex } from '../core/digest.js';

/**
 * What a text in the blob store is, for texts that a caller can name by their hash:
 * - `upload`: what a client attached and has not sent yet, as base64
 * - `attachment`: what belongs to a message of a run, as base64
 * - `context`: the context of a run, as JSON
 */
export type OwnedKind = 'upload' | 'attachment' | 'context';

/**
 * A text with its kind and a digest of its owner written before it, and so covered by its hash: whoever
 * names the hash of another owner's text, or of a text of no owner, gets nothing.
 */
export function ownedText(kind: OwnedKind, owner: string, text: string): string {
  return headOf(kind, owner) + text;
}

/** The text, where it is of this kind; null else. `owner`: null for whoever it may be. */
export function readOwned(kind: OwnedKind, owner: string | null, stored: string): string | null {
  const bytes = headBytes(kind);
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

/** Bytes before the text itself, for every owner. */
export function headBytes(kind: OwnedKind): number {
  return headOf(kind, '').length;
}

const KINDS: readonly OwnedKind[] = ['upload', 'attachment', 'context'];
/** A SHA-256 in hex, and the end of the line. */
const DIGEST_AND_END = 65;

function headOf(kind: OwnedKind, owner: string): string {
  return `perdure ${kind} of ${sha256Hex(owner)}\n`;
}
