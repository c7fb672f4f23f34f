import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Archive } from './archive.js';
import { describeDiskError } from './disk-fixes.js';
import { fileBlobStore } from './file-blob-store.js';
import { archiveIn, type ObjectStore } from './object-stores.js';
import { storesAt } from './s3-stores.js';
import type { Stores } from './stores.js';
import { syncFolder } from './sync-folder.js';
import { toolLockIn, type ToolLock } from './tool-lock.js';
import { writeNew, writeWhole } from './write-file.js';

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
  };
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
