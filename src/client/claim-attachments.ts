import { bindAttachments, NotAttachedError } from '../storage/attached-text.js';
import type { BlobStore } from '../storage/blob-store.js';
import { checkAttachments } from '../core/input/attachments.js';
import type { Attachment } from '../core/transcript/messages.js';
import { InputError } from '../core/errors.js';

/**
 * Binds the attachments of a message to its run. Returns nothing for malformed attachments, which
 * the run itself reports. Rejects with an `InputError` for an attachment of another run, and with a
 * `BlobError`.
 */
export async function claimAttachments(
  blobs: BlobStore,
  run: string,
  { attachments }: { readonly attachments?: readonly Attachment[] | undefined },
): Promise<{ readonly attachments?: readonly Attachment[] }> {
  if (attachments === undefined || checkAttachments(attachments) !== null) return {};
  try {
    return { attachments: await bindAttachments(blobs, run, attachments) };
  } catch (error) {
    if (!(error instanceof NotAttachedError)) throw error;
    throw new InputError(`attachments: ${error.message}`, { cause: error });
  }
}
