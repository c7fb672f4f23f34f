import type { Attachment } from '../core/transcript/messages.js';
import type { Capabilities } from './capabilities.js';
import { MAGIC_BYTES, mediaTypeOf } from '../core/text/media-type.js';
import type { ModelRequest } from './model.js';
import { ModelError } from './model-error.js';
import { sample } from './sample.js';

/** A part of a user's message on the wire. */
export type WirePart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | {
      readonly type: 'file';
      readonly file: { readonly filename: string; readonly file_data: string };
    };

/** The base64 text of each attachment that lies in a blob, by the blob's SHA-256. */
export type AttachedData = ReadonlyMap<string, string>;

export const NO_DATA: AttachedData = new Map();

type Kept = Extract<Attachment, { readonly mediaType: string }>;

/**
 * Reads what is attached to the messages of a request, and in `also` to results, each blob once.
 *
 * Rejects with a `ModelError`: of kind `request` where the model takes no such thing or the thing is
 * not what it claims to be, of kind `retry` where it cannot be read now.
 */
export async function readAttachments(
  request: ModelRequest,
  capabilities: Capabilities,
  { also = [] }: { readonly also?: readonly Attachment[] } = {},
): Promise<AttachedData> {
  const said = request.messages.flatMap((message) =>
    message.role === 'user' ? (message.attachments ?? []) : [],
  );
  const attached = [...said, ...also];
  if (attached.length === 0) return NO_DATA;
  for (const { type } of attached) {
    const isTaken = type === 'image' ? capabilities.images : capabilities.files;
    if (!isTaken) throw notTaken(type, request.model);
  }
  const kept = attached.filter((attachment): attachment is Kept => 'blob' in attachment);
  const byHash = new Map(kept.map((attachment) => [attachment.blob.sha256, attachment]));
  const texts = [...byHash].map(
    async ([sha256, attachment]) => [sha256, await read(request, attachment)] as const,
  );
  return new Map(await Promise.all(texts));
}

/** How an attachment goes over the wire. Throws a `ModelError` for one that no server could read. */
export function attachedPart(attachment: Attachment, data: AttachedData): WirePart {
  if ('url' in attachment) {
    return { type: 'image_url', image_url: { url: checkedUrl(attachment.url) } };
  }
  const { type, mediaType, blob } = attachment;
  const base64 = data.get(blob.sha256);
  if (base64 === undefined) throw unreadable(attachment, 'nobody read it');
  refuseWrongType(attachment, base64);
  const url = `data:${mediaType};base64,${base64}`;
  if (type === 'image') return { type: 'image_url', image_url: { url } };
  const filename = attachment.name ?? `attachment.${mediaType.split('/')[1] ?? 'bin'}`;
  return { type: 'file', file: { filename, file_data: url } };
}

async function read({ files }: ModelRequest, attachment: Kept): Promise<string> {
  if (files === undefined) throw unreadable(attachment, 'the request has no `files` to read it by');
  const text = await files(attachment.blob).catch((error: unknown) => {
    if (error instanceof ModelError) throw error;
    throw unreadable(attachment, error instanceof Error ? error.message : String(error), error);
  });
  if (text !== '' && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return text;
  throw refused(`${nameOf(attachment)} is not kept as base64 text; attach it once more`);
}

/** What begins like a PNG is one, whatever it is called: servers answer a wrong type oddly or not at all. */
function refuseWrongType(attachment: Kept, base64: string): void {
  const { type, mediaType } = attachment;
  const head = base64.slice(0, Math.ceil(MAGIC_BYTES / 3) * 4);
  const found = mediaTypeOf(Buffer.from(head, 'base64'));
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(mediaType)) {
    throw refused(`${JSON.stringify(mediaType)} is no media type; give one such as image/png`);
  }
  if (found !== null && found !== mediaType) {
    throw refused(`${nameOf(attachment)} is ${found}, not ${mediaType}; attach it as ${found}`);
  }
  if (type === 'image' && !mediaType.startsWith('image/')) {
    throw refused(`${nameOf(attachment)} is ${mediaType}, not an image; attach it as a file`);
  }
}

function checkedUrl(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw refused(`${sample(JSON.stringify(url))} is no http(s) address; attach the image itself`);
}

function nameOf({ name, type, blob }: Kept): string {
  return name === undefined ? `the attached ${type} ${blob.sha256.slice(0, 12)}` : `"${name}"`;
}

function notTaken(type: Attachment['type'], model: string): ModelError {
  const capability = type === 'image' ? 'images' : 'files';
  const message =
    `The model "${model}" takes no ${capability}; name one that does, or leave the ${type} out. ` +
    `If it does, set capabilities: { ${capability}: true } at its entry in \`models\` of the config`;
  return new ModelError(message, { kind: 'request', type: `no_${capability}` });
}

function refused(message: string): ModelError {
  return new ModelError(message, { kind: 'request', type: 'bad_attachment' });
}

function unreadable(attachment: Kept, why: string, cause?: unknown): ModelError {
  return new ModelError(
    `${nameOf(attachment)} cannot be read: ${sample(why)}`,
    { kind: 'retry', type: 'attachment_unreadable' },
    { cause },
  );
}
