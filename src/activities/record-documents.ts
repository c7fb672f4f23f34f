import type { BlobStore } from '../storage/blob-store.js';
import { documentKey, documentText, keyOfDocument } from '../core/text/document-text.js';
import type { RetrievedDocument } from '../core/documents.js';
import { isObject } from '../core/json.js';
import type { PromptMessage } from '../core/transcript/messages.js';
import { redact } from '../secrets/redact.js';
import { headBytes, wellFormed } from '../tools/utf8.js';
import { keepText } from './offload-text.js';

/** Of one turn. */
export const MOST_DOCUMENTS = 50;
/** One document, in UTF-8: what is larger is cut, as a tool's result is. */
const DOCUMENT_BYTES = 64 * 1024;
/** All of a turn together, as JSON at most twice as much: nothing over 256 KiB ever enters the history. */
const ROOM_BYTES = 96 * 1024;
/** In UTF-8; they stand in the text and beside it. */
const ID_BYTES = 100;
const SOURCE_BYTES = 250;
/** What one mark can become, escaped for the text and once more for the history. */
const BYTES_OF_MARK = 8;

interface Found {
  readonly text: string;
  readonly id?: string;
  readonly source?: string;
  readonly key: string;
}

/**
 * What `retrieve` gave, in its order: each document once, and none that stands in the prompt already.
 * Throws where it gave something else, with the value at fault.
 */
export function newDocuments(given: unknown, prompt: readonly PromptMessage[]): readonly Found[] {
  if (!Array.isArray(given)) {
    throw new Error(`it gave ${kindOf(given)}; return an array of texts or { text, id?, source? }`);
  }
  const known = new Set(
    prompt.map(({ role, text }) => (role === 'user' ? keyOfDocument(text) : null)),
  );
  const seen = new Set<string>();
  const found: Found[] = [];
  for (const [index, each] of given.entries()) {
    const document = readDocument(each, index);
    const same = document.id === undefined ? `text ${document.text}` : `id ${document.id}`;
    const key = documentKey(document);
    if (document.text.trim() === '' || seen.has(same)) continue;
    // Of one id the first counts, also where it stands in the prompt already.
    seen.add(same);
    if (!known.has(key)) found.push({ ...document, key });
    if (found.length === MOST_DOCUMENTS) break;
  }
  return found;
}

/**
 * The documents as the history keeps them: within the room that there is, the larger ones by reference.
 * `readable`: the model has a tool to read on.
 */
export async function keepDocuments(
  found: readonly Found[],
  { blobs, readable }: { readonly blobs: BlobStore; readonly readable: boolean },
): Promise<readonly RetrievedDocument[]> {
  const share = fairShare(
    found.map(({ text }) => Buffer.byteLength(text)),
    ROOM_BYTES,
  );
  const maxBytes = Math.min(share, DOCUMENT_BYTES);
  return await Promise.all(
    found.map(async ({ text: whole, key, id, source }) => {
      const { text: shown, blob } = await keepText(whole, blobs, { maxBytes, readable });
      const named = {
        ...(id !== undefined && { id: nameOf(id, ID_BYTES) }),
        ...(source !== undefined && { source: nameOf(source, SOURCE_BYTES) }),
      };
      return { text: documentText(key, { shown, ...named }), ...(blob && { blob }), ...named };
    }),
  );
}

function readDocument(given: unknown, index: number): Omit<Found, 'key'> {
  const { text, id, source } = isObject(given) ? given : { text: given };
  if (typeof text !== 'string') {
    throw new Error(`entry ${index} of what it gave has ${kindOf(text)} for its text`);
  }
  const wrong = [id, source].find((word) => word !== undefined && typeof word !== 'string');
  if (wrong !== undefined) {
    throw new Error(
      `entry ${index} of what it gave: id and source are texts, not ${kindOf(wrong)}`,
    );
  }
  return {
    text: clean(text),
    ...(typeof id === 'string' && id !== '' && { id: clean(id) }),
    ...(typeof source === 'string' && source !== '' && { source: clean(source) }),
  };
}

/** Without secrets, what no document says on purpose, and what takes six bytes each in the history. */
function clean(text: string): string {
  const safe = wellFormed(redact(text));
  // oxlint-disable-next-line no-control-regex -- control characters are the point
  return safe.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '\ufffd');
}

/** Of a name that is made of marks only so much as takes no more room than any other. */
function nameOf(text: string, bytes: number): string {
  const head = headBytes(text, bytes);
  const marks = head.match(/["\\<>\u007f-\u009f\u2028\u2029]/g) ?? [];
  return marks.length * BYTES_OF_MARK <= bytes ? head : headBytes(head, bytes / BYTES_OF_MARK);
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return 'a text';
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}

/** The greatest size that each may have so that all together fit, where smaller ones leave room to larger ones. */
function fairShare(sizes: readonly number[], room: number): number {
  const rising = sizes.toSorted((one, other) => one - other);
  let left = room;
  for (const [index, size] of rising.entries()) {
    const share = Math.floor(left / (rising.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Infinity;
}
