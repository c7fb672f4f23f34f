import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

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
