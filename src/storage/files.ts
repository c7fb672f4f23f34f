import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, open, rename, rm, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { dirname } from 'node:path';

/** Modes of all files in PERDURE_HOME, which hold conversations in plain text. */
export const PRIVATE = { file: 0o600, folder: 0o700 } as const;

/**
 * Creates a folder and its missing parents, accessible to this user only; an existing folder stays
 * unchanged. Rejects with the error of the file system. Node's `recursive` option never returns on
 * file systems that accept no folders, such as /proc.
 */
export async function makeFolder(folder: string): Promise<void> {
  try {
    return await makeOne(folder);
  } catch (error) {
    const parent = dirname(folder);
    if (codeOf(error) !== 'ENOENT' || parent === folder) throw error;
    await makeFolder(parent);
  }
  // Another process may have created the parent meanwhile, so only this attempt counts.
  await makeOne(folder);
}

async function makeOne(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: PRIVATE.folder });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !(await isFolder(folder))) throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null;
}

async function isFolder(folder: string): Promise<boolean> {
  return await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** Makes new names in a folder durable; not every file system supports this. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  try {
    await handle?.sync();
  } catch {
    return;
  } finally {
    await handle?.close();
  }
}

/**
 * Writes a file and creates its missing parent folders. The bytes go to a temporary file, which is
 * flushed to disk and renamed, so a reader sees the whole file or none. Rejects with the error of
 * the file system.
 */
export async function writeWhole(file: string, bytes: Buffer): Promise<void> {
  await writeBy(file, bytes, rename);
}

/** Writes a file like `writeWhole` unless one of this name exists. Returns whether it did. */
export async function writeNew(file: string, bytes: Buffer): Promise<boolean> {
  try {
    await writeBy(file, bytes, async (temporary) => {
      await link(temporary, file);
      await rm(temporary, { force: true });
    });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** `place` moves the temporary file to its name. */
async function writeBy(
  file: string,
  bytes: Buffer,
  place: (temporary: string, file: string) => Promise<void>,
): Promise<void> {
  await makeFolder(path.dirname(file));
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    const handle = await open(temporary, 'wx', PRIVATE.file);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await place(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(path.dirname(file));
}

/** The fix for a lost text. */
export const RESTORE =
  'restore it from a backup, or let all workers use the PERDURE_HOME/blobs that has it';

const ELSEWHERE = 'set PERDURE_HOME to a writable folder';

const FIXES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free space',
  EDQUOT: 'the disk quota is used up: free space',
  EROFS: `the file system is read-only: ${ELSEWHERE}`,
  EACCES: `no permission: change its owner or ${ELSEWHERE}`,
  EPERM: `no permission: change its owner or ${ELSEWHERE}`,
  ENOTDIR: 'a part of the path is a file: set PERDURE_HOME to a folder',
  EEXIST: 'a part of the path is a file: set PERDURE_HOME to a folder',
  ENOENT: 'it does not exist: mount it, or set PERDURE_HOME to the folder that has it',
  EIO: 'the disk is failing: check it',
  ESTALE: 'the network disk was lost: mount it again',
  EFBIG: 'the limit on file size is reached: raise it (ulimit -f)',
  EISDIR: 'a folder is in its place: move it away',
};

/** Describes an error of the file system with its fix: `the disk is full: free space (ENOSPC)`. */
export function describeDiskError({ code = 'error', message }: NodeJS.ErrnoException): string {
  return `${FIXES[code] ?? message} (${code})`;
}

/** Returns PERDURE_HOME, the folder of the server's database, the blobs, and the archive. */
export function perdureHome(env: Readonly<Record<string, string | undefined>>): string {
  return env['PERDURE_HOME'] ?? '.perdure';
}

/** The version of perdure. */
export function ownVersion(): string {
  const file = new URL('../../package.json', import.meta.url);
  const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return typeof found === 'object' && found !== null && 'version' in found
    ? String(found.version)
    : 'unknown';
}

/** With fewer free bytes, the server's next commit may fail, so the disk counts as full. */
export const MIN_FREE_BYTES = 4 * 1024 * 1024;

/**
 * Returns the bytes that this user can still write to the disk of a folder, which need not exist.
 * Null if the file system does not report them.
 */
export async function freeSpace(folder: string): Promise<number | null> {
  const found = await statfs(folder).catch(() => null);
  if (found !== null) return found.bavail * found.bsize;
  return dirname(folder) === folder ? null : await freeSpace(dirname(folder));
}
