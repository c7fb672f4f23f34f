import { wellFormed } from '../core/text/whole-text.js';
import type { BlobStore } from '../storage/blob-store.js';
import {
  documentKey,
  documentText,
  parseDocumentKey,
  type RetrievedDocument,
} from '../core/documents.js';
import { isObject } from '../core/json.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import { redact } from '../secrets/redact.js';
import { headBytes } from '../tools/utf8.js';
import { offloadText } from './offload-text.js';

/** Maximum documents in one turn. */
export const MAX_DOCUMENTS = 50;
/** Maximum bytes in UTF-8 of a document. A larger one is cut like a tool's result. */
const DOCUMENT_BYTES = 64 * 1024;
/** Maximum bytes of all texts of a turn. JSON at most doubles them, so no event exceeds 256 KiB. */
const ROOM_BYTES = 96 * 1024;
/** Maximum bytes of names, which are recorded both in the text and separately. */
const ID_BYTES = 100;
const SOURCE_BYTES = 250;
/**
 * The size of one special character after it is escaped for the text, and again for the history.
 */
const ESCAPED_BYTES = 8;

interface FoundDocument {
  readonly text: string;
  readonly id?: string;
  readonly source?: string;
  readonly key: string;
}

/**
 * Returns the documents that `retrieve` returned, in its order and without duplicates and documents
 * that are already in the prompt. Throws an error that names the wrong value if it returned
 * something else.
 */
export function selectDocuments(
  returned: unknown,
  prompt: readonly PromptMessage[],
): readonly FoundDocument[] {
  if (!Array.isArray(returned)) {
    throw new Error(
      `expected an array of strings or { text, id?, source? }, got ${describeKind(returned)}`,
    );
  }
  const known = new Set(
    prompt.map(({ role, text }) => (role === 'user' ? parseDocumentKey(text) : null)),
  );
  const seen = new Set<string>();
  const found: FoundDocument[] = [];
  for (const [index, each] of returned.entries()) {
    const document = readDocument(each, index);
    const same = document.id === undefined ? `text ${document.text}` : `id ${document.id}`;
    const key = documentKey(document);
    if (document.text.trim() === '' || seen.has(same)) continue;
    // Only the first document with an id counts, even if it is already in the prompt.
    seen.add(same);
    if (!known.has(key)) found.push({ ...document, key });
    if (found.length === MAX_DOCUMENTS) break;
  }
  return found;
}

/**
 * Returns the documents as the history records them: cut to the limit of a turn, with the larger
 * ones in the blob store. `readable` means that the model has a tool to read the rest.
 */
export async function recordDocuments(
  found: readonly FoundDocument[],
  { blobs, readable }: { readonly blobs: BlobStore; readonly readable: boolean },
): Promise<readonly RetrievedDocument[]> {
  const share = fairShare(
    found.map(({ text }) => Buffer.byteLength(text)),
    ROOM_BYTES,
  );
  const maxBytes = Math.min(share, DOCUMENT_BYTES);
  return await Promise.all(
    found.map(async ({ text: whole, key, id, source }) => {
      const { text: shown, blob } = await offloadText(whole, blobs, { maxBytes, readable });
      const named = {
        ...(id !== undefined && { id: cutName(id, ID_BYTES) }),
        ...(source !== undefined && { source: cutName(source, SOURCE_BYTES) }),
      };
      return { text: documentText(key, { shown, ...named }), ...(blob && { blob }), ...named };
    }),
  );
}

function readDocument(value: unknown, index: number): Omit<FoundDocument, 'key'> {
  const { text, id, source } = isObject(value) ? value : { text: value };
  if (typeof text !== 'string') {
    throw new Error(`document ${index}: expected a string as text, got ${describeKind(text)}`);
  }
  const wrong = [id, source].find((name) => name !== undefined && typeof name !== 'string');
  if (wrong !== undefined) {
    throw new Error(
      `document ${index}: expected a string as id and source, got ${describeKind(wrong)}`,
    );
  }
  return {
    text: clean(text),
    ...(typeof id === 'string' && id !== '' && { id: clean(id) }),
    ...(typeof source === 'string' && source !== '' && { source: clean(source) }),
  };
}

/**
 * Removes secrets, and replaces control characters, each of which takes six bytes in the history.
 */
function clean(text: string): string {
  const safe = wellFormed(redact(text));
  // oxlint-disable-next-line no-control-regex -- control characters are the point
  return safe.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '\ufffd');
}

/** Cuts a name. One with many special characters is cut further, so its escaped form also fits. */
function cutName(text: string, bytes: number): string {
  const head = headBytes(text, bytes);
  const special = head.match(/["\\<>\u007f-\u009f\u2028\u2029]/g) ?? [];
  return special.length * ESCAPED_BYTES <= bytes ? head : headBytes(head, bytes / ESCAPED_BYTES);
}

function describeKind(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return 'a string';
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}

/**
 * Returns the largest size that each text may have so that all fit; small texts leave room for
 * large ones.
 */
function fairShare(sizes: readonly number[], room: number): number {
  const sorted = sizes.toSorted((one, other) => one - other);
  let left = room;
  for (const [index, size] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Infinity;
}
