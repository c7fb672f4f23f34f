import { MAGIC_BYTES, detectMediaType } from '../../core/text/text.js';
import type { Attachment } from '../../core/transcript/messages.js';
import type { ModelCapabilities } from '../known-models.js';
import { type ModelRequest, ModelError, sample } from '../model.js';

/** A part of a user message, in the form of Chat Completions. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | {
      readonly type: 'file';
      readonly file: { readonly filename: string; readonly file_data: string };
    };

/** The base64 text of each attachment in a blob, by the blob's SHA-256. */
export type AttachedData = ReadonlyMap<string, string>;

export const NO_DATA: AttachedData = new Map();

type StoredAttachment = Extract<Attachment, { readonly mediaType: string }>;

/**
 * Reads the attachments of a request's messages, and those in `also`, each blob once.
 *
 * Rejects with a `ModelError`: of kind `request` if the model does not accept such attachments or
 * one is not stored as base64, of kind `retry` if one cannot be read now.
 */
export async function readAttachments(
  request: ModelRequest,
  capabilities: ModelCapabilities,
  { also = [] }: { readonly also?: readonly Attachment[] } = {},
): Promise<AttachedData> {
  const ofMessages = request.messages.flatMap((message) =>
    message.role === 'user' ? (message.attachments ?? []) : [],
  );
  const attached = [...ofMessages, ...also];
  if (attached.length === 0) return NO_DATA;
  for (const { type } of attached) {
    const isAccepted = type === 'image' ? capabilities.images : capabilities.files;
    if (!isAccepted) throw unsupported(type, request.model);
  }
  const stored = attached.filter((one): one is StoredAttachment => 'blob' in one);
  const byHash = new Map(stored.map((attachment) => [attachment.blob.sha256, attachment]));
  const pairs = [...byHash].map(
    async ([sha256, attachment]) => [sha256, await readBlob(request, attachment)] as const,
  );
  return new Map(await Promise.all(pairs));
}

async function readBlob({ files }: ModelRequest, attachment: StoredAttachment): Promise<string> {
  if (files === undefined) throw unreadable(attachment, 'the request has no `files` to read it by');
  const text = await files(attachment.blob).catch((error: unknown) => {
    if (error instanceof ModelError) throw error;
    throw unreadable(attachment, error instanceof Error ? error.message : String(error), error);
  });
  if (text !== '' && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return text;
  throw invalid(`${describe(attachment)} is not stored as base64 text; attach it once more`);
}

/**
 * Writes an attachment as a part of a message. Throws a `ModelError` for one that no server can
 * read.
 */
export function createPart(attachment: Attachment, data: AttachedData): ContentPart {
  if ('url' in attachment) {
    return { type: 'image_url', image_url: { url: checkUrl(attachment.url) } };
  }
  const { type, mediaType, blob } = attachment;
  const base64 = data.get(blob.sha256);
  if (base64 === undefined) throw unreadable(attachment, 'it was not read');
  checkType(attachment, base64);
  const url = `data:${mediaType};base64,${base64}`;
  if (type === 'image') return { type: 'image_url', image_url: { url } };
  const filename = attachment.name ?? `attachment.${mediaType.split('/')[1] ?? 'bin'}`;
  return { type: 'file', file: { filename, file_data: url } };
}

function checkUrl(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw invalid(`${sample(JSON.stringify(url))} is not an http(s) URL; attach the image itself`);
}

/**
 * Checks the media type by the first bytes, not the name, because servers handle a wrong media type
 * unpredictably.
 */
function checkType(attachment: StoredAttachment, base64: string): void {
  const { type, mediaType } = attachment;
  const head = base64.slice(0, Math.ceil(MAGIC_BYTES / 3) * 4);
  const found = detectMediaType(Buffer.from(head, 'base64'));
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(mediaType)) {
    throw invalid(`${JSON.stringify(mediaType)} is not a media type; give one such as image/png`);
  }
  if (found !== null && found !== mediaType) {
    throw invalid(`${describe(attachment)} is ${found}, not ${mediaType}; attach it as ${found}`);
  }
  if (type === 'image' && !mediaType.startsWith('image/')) {
    throw invalid(`${describe(attachment)} is ${mediaType}, not an image; attach it as a file`);
  }
}

function describe({ name, type, blob }: StoredAttachment): string {
  return name === undefined ? `the attached ${type} ${blob.sha256.slice(0, 12)}` : `"${name}"`;
}

function unsupported(type: Attachment['type'], model: string): ModelError {
  const capability = type === 'image' ? 'images' : 'files';
  const message =
    `The model "${model}" does not accept ${capability}; use one that does, or remove the ${type}. ` +
    `If it does, set capabilities: { ${capability}: true } at its entry in \`models\` of the config`;
  return new ModelError(message, { kind: 'request', type: `no_${capability}` });
}

function invalid(message: string): ModelError {
  return new ModelError(message, { kind: 'request', type: 'bad_attachment' });
}

function unreadable(attachment: StoredAttachment, reason: string, cause?: unknown): ModelError {
  return new ModelError(`${describe(attachment)} cannot be read: ${sample(reason)}`, {
    kind: 'retry',
    type: 'attachment_unreadable',
    cause,
  });
}
