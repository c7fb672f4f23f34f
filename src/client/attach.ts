import { storeUpload } from '../storage/attached-text.js';
import type { BlobStore } from '../storage/blob-store.js';
import type { Attachment } from '../core/transcript/messages.js';
import { detectMediaType } from '../core/text/media-type.js';
import { InputError } from '../core/errors.js';

/**
 * What is known about attached bytes, apart from the bytes themselves, which may be at most 20 MiB.
 */
export interface AttachOptions {
  /** The media type, such as `image/png`; needed only if it cannot be detected from the bytes. */
  readonly mediaType?: string;
  /** The file name that the model sees. */
  readonly name?: string;
}

/**
 * The size limit: attachments are sent to the provider with every request, and no provider accepts
 * larger ones.
 */
export const MAX_ATTACHED_BYTES = 20 * 1024 * 1024;

/**
 * Stores bytes in the blob store, to attach them to a message as an image or a file, depending on
 * their media type. They belong to the run to which they are first sent. Rejects with an
 * `InputError` if they are empty, too large, or of an unknown type, and with a `BlobError`.
 */
export async function attach(
  blobs: BlobStore,
  bytes: Uint8Array,
  { mediaType: given, name }: AttachOptions,
): Promise<Attachment> {
  if (bytes.length === 0 || bytes.length > MAX_ATTACHED_BYTES) {
    throw new InputError(`attach: expected 1 to ${MAX_ATTACHED_BYTES} bytes, got ${bytes.length}`);
  }
  const mediaType = given ?? detectMediaType(bytes);
  if (mediaType === null) {
    throw new InputError(
      'attach: expected bytes of a known type; give `mediaType`, e.g. "text/csv"',
    );
  }
  const blob = await storeUpload(blobs, Buffer.from(bytes).toString('base64'));
  const type = mediaType.startsWith('image/') ? 'image' : 'file';
  return { type, blob, mediaType, ...(name !== undefined && { name }) };
}
