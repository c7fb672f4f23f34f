import { createHash } from 'node:crypto';
import { link, readFile, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import path from 'node:path';
import type { BlobRef } from '../core/transcript/messages.js';
import { type Archive, BlobError, type BlobStore, assertSha256 } from './blob-store.js';
import { RESTORE, describeDiskError, syncFolder, writeNew, writeWhole } from './files.js';
import { storesAt } from './s3-stores.js';
import {
  type ObjectStore,
  type StoredObject,
  type Stores,
  type ToolLock,
  archiveIn,
  blobName,
  blobsAmong,
  toolLockIn,
} from './tool-lock.js';

/**
 * Creates a `BlobStore` in a folder, which all workers of a task queue must share.
 *
 * The files are `ab/cd/abcd…`, so no folder becomes large. A text is written to a temporary file,
 * flushed to disk, and renamed, so a reader sees the whole text or nothing. `get` checks the hash,
 * and the next `put` of a text replaces a damaged file.
 */
export function fileBlobStore(directory: string): BlobStore {
  const root = path.resolve(directory);
  const objects = fileObjects(root);
  return {
    put: (text) => put(root, text),
    get: async ({ sha256 }) => {
      assertSha256(sha256);
      return (await read(root, sha256)).toString();
    },
    erasure: {
      list: async () =>
        blobsAmong(
          await objects.entries('').catch((cause: unknown) => {
            const why = cause instanceof Error ? cause.message : String(cause);
            const message = `blobs cannot be read in ${root}: ${why}`;
            throw new BlobError(message, { kind: 'unreadable', cause });
          }),
        ),
      remove: async ({ sha256 }, before) => {
        assertSha256(sha256);
        return await objects.remove(blobName(sha256), before).catch((cause: unknown) => {
          const why = cause instanceof Error ? cause.message : String(cause);
          const message = `blob ${sha256} cannot be removed from ${root}: ${why}`;
          throw new BlobError(message, { kind: 'unwritable', cause });
        });
      },
    },
  };
}

async function put(root: string, text: string): Promise<BlobRef> {
  const bytes = Buffer.from(text);
  const sha256 = hash(bytes);
  if (!((await holds(root, sha256)) && (await refresh(place(root, sha256))))) {
    await writeWhole(place(root, sha256), bytes).catch((error: NodeJS.ErrnoException) => {
      throw unwritable(root, error);
    });
  }
  return { sha256, bytes: bytes.length };
}

/**
 * Sets the time of a text to now, so that erasure leaves it although no history names it yet. Returns
 * false if the text must be written again.
 */
async function refresh(file: string): Promise<boolean> {
  const now = new Date();
  return await utimes(file, now, now).then(
    () => true,
    // Nothing can be stored there, and nothing removed.
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  );
}

async function holds(root: string, sha256: string): Promise<boolean> {
  try {
    await read(root, sha256);
    return true;
  } catch (error) {
    if (!(error instanceof BlobError)) throw error;
    // The first write creates a store that does not exist yet.
    if (error.kind !== 'unreadable' || isAbsent(error.cause)) return false;
    throw error;
  }
}

async function read(root: string, sha256: string): Promise<Buffer> {
  const file = place(root, sha256);
  const bytes = await readFile(file).catch(async (error: NodeJS.ErrnoException) => {
    throw await unreadable(root, sha256, error);
  });
  if (hash(bytes) === sha256) return bytes;
  throw new BlobError(
    `blob ${sha256} in ${root} is damaged (${bytes.length} bytes with another hash); ${RESTORE}`,
    { kind: 'damaged' },
  );
}

function place(root: string, sha256: string): string {
  return path.join(root, blobName(sha256));
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Returns the error of a failed read: a missing text, or a store that does not exist or cannot be
 * read.
 */
async function unreadable(
  root: string,
  sha256: string,
  cause: NodeJS.ErrnoException,
): Promise<BlobError> {
  const isStoreThere = await stat(root).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (isAbsent(cause) && isStoreThere) {
    return new BlobError(`blob ${sha256} is missing from ${root}; ${RESTORE}`, {
      kind: 'missing',
      cause,
    });
  }
  const why = describeDiskError(cause);
  return new BlobError(`blob ${sha256} cannot be read in ${root}: ${why}`, {
    kind: 'unreadable',
    cause,
  });
}

function isAbsent(cause: unknown): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function unwritable(root: string, cause: NodeJS.ErrnoException): BlobError {
  return new BlobError(`blobs cannot be written to ${root}: ${describeDiskError(cause)}`, {
    kind: 'unwritable',
    cause,
  });
}

/**
 * Returns the stores that workers, clients, and the command share: those that PERDURE_STORE names,
 * else folders in `home`. Throws an `InputError` for an unusable PERDURE_STORE.
 */
export function openStores(
  home: string,
  env: Readonly<Record<string, string | undefined>> = {},
): Required<Stores> {
  const address = env['PERDURE_STORE']?.trim() ?? '';
  if (address !== '') return storesAt(address, env);
  return {
    blobs: fileBlobStore(path.join(home, 'blobs')),
    archive: fileArchive(path.join(home, 'archive')),
    toolLock: fileToolLock(home),
  };
}

/**
 * Creates an `Archive` in a folder, which all workers of a task queue must share. Each archived
 * history is one file, in the form that `perdure export` writes and `perdure replay` reads.
 */
export function fileArchive(directory: string): Archive {
  return archiveIn(fileObjects(path.resolve(directory)));
}

/** Creates a `ToolLock` in the folder `mcp-lock` of a home. */
export function fileToolLock(home: string): ToolLock {
  return toolLockIn(fileObjects(path.resolve(home, 'mcp-lock')));
}

function fileObjects(root: string): ObjectStore {
  return {
    place: root,
    async put(name, bytes) {
      const file = path.join(root, name);
      await writeWhole(file, bytes).catch(rethrowWithFix);
      await syncFolders(root, path.dirname(file));
    },
    async create(name, bytes) {
      const file = path.join(root, name);
      const isNew = await writeNew(file, bytes).catch(rethrowWithFix);
      await syncFolders(root, path.dirname(file));
      return isNew;
    },
    async get(name) {
      return await readFile(path.join(root, name)).catch(orAbsent(null));
    },
    async list(folder) {
      return await readdir(path.join(root, folder)).catch(orAbsent([]));
    },
    async entries(folder) {
      const found = await readdir(path.join(root, folder), {
        recursive: true,
        withFileTypes: true,
      }).catch(orAbsent([]));
      const objects: StoredObject[] = [];
      for (const entry of found) {
        if (entry.isDirectory()) continue;
        const file = path.join(entry.parentPath, entry.name);
        const whole = file.endsWith(ERASING) ? await restore(file) : file;
        const stored = await stat(whole).catch(orAbsent(null));
        const name = path.relative(root, whole).split(path.sep).join('/');
        if (stored !== null) objects.push({ name, at: stored.mtimeMs });
      }
      return objects;
    },
    async remove(name, before) {
      const file = path.join(root, name);
      const folder = path.dirname(file);
      const isRemoved = await removeOlder(file, before).catch(rethrowWithFix);
      // What a process that was killed has written of it.
      for (const other of await readdir(folder).catch(orAbsent([]))) {
        const isPart = other.startsWith(`${path.basename(file)}.`) && other.endsWith('.tmp');
        if (isPart) await removeOlder(path.join(folder, other), before).catch(rethrowWithFix);
      }
      await syncFolder(folder);
      return isRemoved;
    },
  };
}

/** The end of the name of a file that is about to be removed. */
const ERASING = '.erasing';

/**
 * Removes a file unless it was written or refreshed at `before` or later; returns whether it is gone.
 * The file is moved first, so a `put` afterwards writes it again, and the time of one before is seen.
 */
async function removeOlder(file: string, before: number): Promise<boolean> {
  const moved = file + ERASING;
  try {
    if (before === Number.POSITIVE_INFINITY) {
      await rm(file, { force: true });
      return true;
    }
    const { mtimeMs } = await stat(file);
    if (mtimeMs >= before) return false;
    await rename(file, moved);
  } catch (error) {
    if (isAbsent(error)) return true;
    throw error;
  }
  const { mtimeMs } = await stat(moved);
  if (mtimeMs < before) {
    await rm(moved, { force: true });
    return true;
  }
  await restore(moved);
  return false;
}

/** Moves a file back, unless it was written again meanwhile. Returns its name. */
async function restore(moved: string): Promise<string> {
  const file = moved.slice(0, -ERASING.length);
  await link(moved, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST' && error.code !== 'ENOENT') return rethrowWithFix(error);
  });
  await rm(moved, { force: true });
  return file;
}

/** Makes the names of new folders durable; not every file system supports this. */
async function syncFolders(root: string, from: string): Promise<void> {
  for (let folder = path.dirname(from); folder.length >= root.length;) {
    await syncFolder(folder);
    const above = path.dirname(folder);
    if (above === folder) return;
    folder = above;
  }
}

function orAbsent<T>(absent: T): (error: NodeJS.ErrnoException) => T {
  return (error) => (error.code === 'ENOENT' ? absent : rethrowWithFix(error));
}

function rethrowWithFix(cause: NodeJS.ErrnoException): never {
  throw new Error(describeDiskError(cause), { cause });
}
