import { storeUpload } from '../storage/attached-text.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { Attachment } from '../core/transcript/messages.js';
import { detectMediaType } from '../core/text/media-type.js';
import { InputError } from '../core/errors.js';

export interface AttachOptions {
  /** Such as `image/png`; needed only where the bytes themselves do not tell. */
  readonly mediaType?: string;
  /** As the model shall know it. */
  readonly name?: string;
}

/** It goes to the provider with every request, and what is larger no provider takes. */
export const MAX_ATTACHED_BYTES = 20 * 1024 * 1024;

/**
 * Puts bytes into the blob store, to be sent along with a message: an image or a file, by its media
 * type. They belong to no run until a message is sent with them, and to that one run from then on. Rejects with an `InputError` for what is of no kind or too large, and with a `BlobError`.
 */
export async function attach(
  blobs: BlobStore,
  bytes: Uint8Array,
  { mediaType: given, name }: AttachOptions,
): Promise<Attachment> {
  if (bytes.length === 0 || bytes.length > MAX_ATTACHED_BYTES) {
    throw new InputError(`attach: ${bytes.length} bytes; give 1 to ${MAX_ATTACHED_BYTES}`);
  }
  const mediaType = given ?? detectMediaType(bytes);
  if (mediaType === null) {
    throw new InputError(
      'attach: nobody can tell what these bytes are; give `mediaType`, e.g. "text/csv"',
    );
  }
  const blob = await storeUpload(blobs, Buffer.from(bytes).toString('base64'));
  const type = mediaType.startsWith('image/') ? 'image' : 'file';
  return { type, blob, mediaType, ...(name !== undefined && { name }) };
}
