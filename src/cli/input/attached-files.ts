import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileBlobStore } from '../../storage/file-blob-store.js';
import { attach, MAX_ATTACHED_BYTES } from '../../client/attach.js';
import { claimAttachments } from '../../client/claim-attachments.js';
import { InputError } from '../../core/errors.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';

/**
 * What `--attach FILE|URL` names: files are put into the blob store of this home, the address of an
 * image goes to the model's provider as it is. Throws a `UsageError` with the name and the cure.
 */
export async function attachedFiles(
  { home }: CliContext,
  given: readonly string[] = [],
): Promise<readonly Attachment[]> {
  const blobs = fileBlobStore(join(home, 'blobs'));
  return await Promise.all(
    given.map(async (name): Promise<Attachment> => {
      if (/^https?:\/\//i.test(name)) return { type: 'image', url: name };
      const bytes = await read(name);
      try {
        return await attach(blobs, bytes, { name: basename(name) });
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        throw refused(name, 'it is none of PNG, JPEG, GIF, WebP and PDF', error);
      }
    }),
  );
}

/** What is attached to a message, as the one run's that the message goes to. */
export async function ownAttachments(
  { home }: CliContext,
  run: string,
  message: { readonly attachments?: readonly Attachment[] },
): Promise<{ readonly attachments?: readonly Attachment[] }> {
  return await claimAttachments(fileBlobStore(join(home, 'blobs')), run, message);
}

/** Its size is looked at first: nobody shall wait for a file that no provider takes. */
async function read(name: string): Promise<Uint8Array> {
  const found = await stat(name).catch((error: unknown) => {
    throw refused(name, whyNot(error), error);
  });
  if (!found.isFile()) throw refused(name, 'it is no file');
  if (found.size === 0) throw refused(name, 'it is empty');
  if (found.size > MAX_ATTACHED_BYTES) {
    const most = MAX_ATTACHED_BYTES / 1024 ** 2;
    throw refused(name, `${found.size} bytes are more than the ${most} MiB that a provider takes`);
  }
  return await readFile(name).catch((error: unknown) => {
    throw refused(name, whyNot(error), error);
  });
}

function whyNot(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  if (code === 'ENOENT') return 'there is no such file';
  return error instanceof Error ? error.message : String(error);
}

function refused(name: string, why: string, cause?: unknown): UsageError {
  return new UsageError(`--attach ${visible(name)}: ${why}`, { cause });
}
