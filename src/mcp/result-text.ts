import type { BlobStore } from '../storage/blob-store.js';
import { canonicalJson, isObject, parseJson, type Json } from '../core/json.js';
import { redact } from '../secrets/redact.js';
import { normalizeError } from '../tools/result/normalize-error.js';

/** What `tools/call` gave, unchecked: a server may write what it likes. */
export interface CallResult {
  readonly isError: boolean;
  readonly text: string;
}

/** Decoded, of one part; what is larger is named and not kept. */
const MOST_BYTES = 20 * 1024 * 1024;
/** UTF-16 units of one result's text. */
const MOST_CHARACTERS = 8 * 1024 * 1024;
/** UTF-16 units of JSON that is compared with a text beside it. */
const MOST_COMPARED = 64 * 1024;

/**
 * A tool's answer as text for the model: its structured content as JSON, else its texts. Images, sounds
 * and files go to the blob store, and the text names them as attachments, with their media type.
 */
export async function resultText(result: unknown, blobs: BlobStore): Promise<CallResult> {
  if (!isObject(result)) return { isError: true, text: 'the server gave no result' };
  const { content, structuredContent } = result;
  const isError = result['isError'] === true;
  const blocks = Array.isArray(content) ? content.filter((block) => isObject(block)) : [];
  const rest = blocks.filter(({ type }) => type !== 'text');
  const texts = blocks.filter(({ type }) => type === 'text').map(({ text }) => asText(text));
  const structured = structuredContent === undefined ? null : JSON.stringify(structuredContent);
  // The texts of a structured answer say the same again; those of an error say what is wrong.
  const isSame = structured === null ? () => false : sameAs(structured);
  const said = structured === null || isError ? texts.filter((each) => !isSame(each)) : [];
  const others: string[] = [];
  // One after the other: a thousand pictures at once would be in memory in several forms each.
  // oxlint-disable-next-line no-await-in-loop
  for (const block of rest) others.push(await named(block, blobs));
  const parts = [...said, ...(structured === null ? [] : [structured]), ...others];
  const none = isError ? 'the tool failed and gave no reason' : '(no result)';
  return { isError, text: bounded(parts) || none };
}

/** The parts as one text. Of one that is too long the beginning, and how much of it was left out. */
function bounded(parts: readonly string[]): string {
  const text = parts.join('\n');
  const left = text.length - MOST_CHARACTERS;
  return left > 0 ? `${text.slice(0, MOST_CHARACTERS)}\n[${left} characters were left out]` : text;
}

/** Whether a text is this very value as JSON. A large one is shown twice rather than compared. */
function sameAs(structured: string): (text: string) => boolean {
  if (structured.length > MOST_COMPARED) return () => false;
  const canonical = canonicalOf(structured);
  return (text) => text.length <= 2 * MOST_COMPARED && canonicalOf(text) === canonical;
}

function canonicalOf(json: string): string | undefined {
  const value = parseJson(json);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it came as JSON
  return value === undefined ? undefined : canonicalJson(value as Json);
}

type Block = Record<string, unknown>;

async function named(block: Block, blobs: BlobStore): Promise<string> {
  switch (block['type']) {
    case 'image':
    case 'audio':
      return await kept(asText(block['type']), { ...block, base64: asText(block['data']) }, blobs);
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
  return await kept('file', { ...content, name: uri, base64: asText(blob) }, blobs);
}

/** Keeps bytes, and says by which attachment they can be handed on. */
async function kept(
  kind: string,
  block: Block & { base64: string },
  blobs: BlobStore,
): Promise<string> {
  const { base64, name } = block;
  const mediaType = asText(block['mimeType']) || 'application/octet-stream';
  const size = Buffer.byteLength(base64, 'base64');
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || size === 0) {
    return `[${kind} ${mediaType} that is not base64, left out]`;
  }
  // A file that shows a secret cannot be kept with a part of its bytes replaced.
  if (redact(base64) !== base64) return `[${kind} ${mediaType} that holds a secret, left out]`;
  if (size > MOST_BYTES) return `[${kind} ${mediaType} of ${size} bytes, too large to be kept]`;
  const blob = await blobs.put(base64).catch((error: unknown) => normalizeError(error).message);
  // What has been done is not done again because its picture is lost.
  if (typeof blob === 'string') return `[${kind} ${mediaType} that could not be kept: ${blob}]`;
  const type = mediaType.startsWith('image/') ? 'image' : 'file';
  const attachment = { type, mediaType, blob, ...(typeof name === 'string' && { name }) };
  return `[${kind} of ${size} bytes, not shown; kept as attachment ${JSON.stringify(attachment)}]`;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
