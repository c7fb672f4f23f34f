import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { openStores } from '../../storage/file-stores.js';
import { attach, MAX_ATTACHED_BYTES } from '../../client/attach.js';
import { claimAttachments } from '../../client/claim-attachments.js';
import { InputError } from '../../core/errors.js';
import type { Attachment } from '../../core/transcript/messages.js';
import { visible } from '../../core/text/summaries.js';
import type { CliContext } from '../context.js';
import { UsageError } from '../exit-codes.js';

/**
 * Resolves the values of `--attach FILE|URL`: stores files in the blob store of this home, and
 * passes the URL of an image on to the model's provider. Throws a `UsageError` that names the file
 * and the fix.
 */
export async function attachedFiles(
  { home, env }: CliContext,
  names: readonly string[] = [],
): Promise<readonly Attachment[]> {
  const { blobs } = openStores(home, env);
  return await Promise.all(
    names.map(async (name): Promise<Attachment> => {
      if (/^https?:\/\//i.test(name)) return { type: 'image', url: name };
      const bytes = await read(name);
      try {
        return await attach(blobs, bytes, { name: basename(name) });
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        throw attachError(name, 'expected a PNG, JPEG, GIF, WebP, or PDF file', error);
      }
    }),
  );
}

/** Binds the attachments of a message to the run that receives it. */
export async function ownAttachments(
  { home, env }: CliContext,
  run: string,
  message: { readonly attachments?: readonly Attachment[] },
): Promise<{ readonly attachments?: readonly Attachment[] }> {
  return await claimAttachments(openStores(home, env).blobs, run, message);
}

/** Reads a file. Checks the size first, to avoid reading a file that no provider accepts. */
async function read(name: string): Promise<Uint8Array> {
  const found = await stat(name).catch((error: unknown) => {
    throw attachError(name, reasonFor(error), error);
  });
  if (!found.isFile()) throw attachError(name, 'expected a file, got a folder or a device');
  if (found.size === 0) throw attachError(name, 'expected a file with content, got an empty one');
  if (found.size > MAX_ATTACHED_BYTES) {
    const limit = MAX_ATTACHED_BYTES / 1024 ** 2;
    throw attachError(
      name,
      `expected at most ${limit} MiB, got ${found.size} bytes; no provider accepts more`,
    );
  }
  return await readFile(name).catch((error: unknown) => {
    throw attachError(name, reasonFor(error), error);
  });
}

/** Returns why a file cannot be read. */
export function reasonFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  if (code === 'ENOENT') return 'there is no such file';
  return error instanceof Error ? error.message : String(error);
}

function attachError(name: string, problem: string, cause?: unknown): UsageError {
  return new UsageError(`--attach ${visible(name)}: ${problem}`, { cause });
}
