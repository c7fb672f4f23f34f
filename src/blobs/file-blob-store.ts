import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { BlobRef } from '../core/messages.js';
import { BlobError, assertSha256 } from './blob-store.js';
import type { BlobStore } from './blob-store.js';
import { diskCure } from '../storage/disk-cures.js';
import { syncFolder } from '../storage/sync-folder.js';

/**
 * A `BlobStore` in a folder, which all workers of a task queue must share.
 *
 * `ab/cd/abcd…`: two levels of folders keep any one of them small. A text is written beside its place,
 * flushed to disk and renamed, so a reader sees all of it or nothing; what is read is checked against
 * its hash, and a damaged file is replaced by the next `put` of its text.
 */
export function fileBlobStore(directory: string): BlobStore {
  const root = path.resolve(directory);
  return {
    put: (text) => put(root, text),
    get: async ({ sha256 }) => {
      assertSha256(sha256);
      return (await read(root, sha256)).toString();
    },
  };
}

async function put(root: string, text: string): Promise<BlobRef> {
  const bytes = Buffer.from(text);
  const sha256 = hash(bytes);
  if (!(await holds(root, sha256))) {
    await write(place(root, sha256), bytes).catch((error: NodeJS.ErrnoException) => {
      throw unwritable(root, error);
    });
  }
  return { sha256, bytes: bytes.length };
}

async function holds(root: string, sha256: string): Promise<boolean> {
  try {
    await read(root, sha256);
    return true;
  } catch (error) {
    if (error instanceof BlobError && error.kind !== 'unreadable') return false;
    throw error;
  }
}

async function read(root: string, sha256: string): Promise<Buffer> {
  const file = place(root, sha256);
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(root, sha256, error);
  });
  if (hash(bytes) === sha256) return bytes;
  throw new BlobError(
    'damaged',
    `${file} is damaged: its ${bytes.length} bytes do not have the hash in its name; restore it from a backup`,
  );
}

async function write(file: string, bytes: Buffer): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    const handle = await open(temporary, 'wx');
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(path.dirname(file));
}

function place(root: string, sha256: string): string {
  return path.join(root, sha256.slice(0, 2), sha256.slice(2, 4), sha256);
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function unreadable(root: string, sha256: string, cause: NodeJS.ErrnoException): BlobError {
  if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR') {
    return new BlobError(
      'missing',
      `blob ${sha256} is not in ${root}; workers must share PERDURE_HOME/blobs`,
      { cause },
    );
  }
  return new BlobError(
    'unreadable',
    `blob ${sha256} cannot be read in ${root} (${cause.code ?? cause.message}); check its permissions`,
    { cause },
  );
}

function unwritable(root: string, cause: NodeJS.ErrnoException): BlobError {
  return new BlobError('unwritable', `blobs cannot be written to ${root}: ${diskCure(cause)}`, {
    cause,
  });
}
