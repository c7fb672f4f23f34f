import type { BlobStore } from '../storage/blob-store.js';
import { canonicalJson, isObject, parseJson, type Json } from '../core/json.js';
import { redact } from '../secrets/redact.js';
import { normalizeError } from '../tools/result/normalize-error.js';

/** The result of `tools/call` as text. */
export interface McpResult {
  readonly isError: boolean;
  readonly text: string;
}

/** Maximum bytes of one decoded part; a larger part is named but not stored. */
const MAX_BYTES = 20 * 1024 * 1024;
/** Maximum UTF-16 units of one result's text. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Maximum UTF-16 units of structured content that is compared with the texts. */
const MAX_COMPARED = 64 * 1024;

/**
 * Converts a server's result, which may be anything, into text for the model: the structured
 * content as JSON, else the texts. Images, sounds, and files go to the blob store, and the text
 * names them as attachments with their media type.
 */
export async function resultText(result: unknown, blobs: BlobStore): Promise<McpResult> {
  if (!isObject(result)) return { isError: true, text: 'the server gave no result' };
  const { content, structuredContent } = result;
  const isError = result['isError'] === true;
  const blocks = Array.isArray(content) ? content.filter((block) => isObject(block)) : [];
  const rest = blocks.filter(({ type }) => type !== 'text');
  const texts = blocks.filter(({ type }) => type === 'text').map(({ text }) => asText(text));
  const structured = structuredContent === undefined ? null : JSON.stringify(structuredContent);
  // The texts of a structured result usually repeat it; those of an error describe the error.
  const isSame = structured === null ? () => false : sameAs(structured);
  const shown = structured === null || isError ? texts.filter((each) => !isSame(each)) : [];
  const others: string[] = [];
  // A thousand pictures at once would be in memory in several forms each.
  // oxlint-disable-next-line no-await-in-loop -- one block at a time
  for (const block of rest) others.push(await nonText(block, blobs));
  const parts = [...shown, ...(structured === null ? [] : [structured]), ...others];
  const none = isError ? 'the tool failed and gave no reason' : '(no result)';
  return { isError, text: bounded(parts) || none };
}

/**
 * Joins the parts. If the text is too long, returns its start and the number of omitted characters.
 */
function bounded(parts: readonly string[]): string {
  const text = parts.join('\n');
  const omitted = text.length - MAX_CHARACTERS;
  return omitted > 0
    ? `${text.slice(0, MAX_CHARACTERS)}\n[${omitted} characters were omitted]`
    : text;
}

/** Returns a test of whether a text is this value as JSON. Large values are not compared. */
function sameAs(structured: string): (text: string) => boolean {
  if (structured.length > MAX_COMPARED) return () => false;
  const canonical = canonicalOf(structured);
  return (text) => text.length <= 2 * MAX_COMPARED && canonicalOf(text) === canonical;
}

function canonicalOf(json: string): string | undefined {
  const value = parseJson(json);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it came as JSON
  return value === undefined ? undefined : canonicalJson(value as Json);
}

type Block = Record<string, unknown>;

/** Stores a part that is not a text and returns the note that replaces it. */
async function nonText(block: Block, blobs: BlobStore): Promise<string> {
  switch (block['type']) {
    case 'image':
    case 'audio':
      return await store(asText(block['type']), { ...block, base64: asText(block['data']) }, blobs);
    case 'resource':
      return await resource(isObject(block['resource']) ? block['resource'] : {}, blobs);
    case 'resource_link': {
      const { uri, name, description, mimeType } = block;
      const about = [asText(name), asText(mimeType), asText(description)].filter(
        (each) => each !== '',
      );
      return `[resource ${asText(uri)}: ${about.join(', ')}]`;
    }
    default:
      return `[a part of type ${JSON.stringify(block['type'] ?? null)}, which cannot be shown]`;
  }
}

async function resource(content: Block, blobs: BlobStore): Promise<string> {
  const { uri, text, blob } = content;
  if (typeof text === 'string') return `[resource ${asText(uri)}]\n${text}`;
  return await store('file', { ...content, name: uri, base64: asText(blob) }, blobs);
}

/** Stores bytes and returns a note with the attachment by which the model can pass them on. */
async function store(
  kind: string,
  block: Block & { base64: string },
  blobs: BlobStore,
): Promise<string> {
  const { base64, name } = block;
  const mediaType = asText(block['mimeType']) || 'application/octet-stream';
  const size = Buffer.byteLength(base64, 'base64');
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || size === 0) {
    return `[${kind} ${mediaType} that is not base64, omitted]`;
  }
  // A file with a secret cannot be stored with some of its bytes replaced.
  if (redact(base64) !== base64) return `[${kind} ${mediaType} that holds a secret, omitted]`;
  if (size > MAX_BYTES) return `[${kind} ${mediaType} of ${size} bytes, too large to store]`;
  const blob = await blobs.put(base64).catch((error: unknown) => normalizeError(error).message);
  // The call was executed, so it must not be repeated because an image cannot be stored.
  if (typeof blob === 'string') return `[${kind} ${mediaType} that could not be stored: ${blob}]`;
  const type = mediaType.startsWith('image/') ? 'image' : 'file';
  const attachment = { type, mediaType, blob, ...(typeof name === 'string' && { name }) };
  return `[${kind} of ${size} bytes, not shown; stored as attachment ${JSON.stringify(attachment)}]`;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
