import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Below this many bytes the server's next commit may fail: the disk counts as full. */
export const LEAST_FREE_BYTES = 4 * 1024 * 1024;

/**
 * Returns the bytes that this user can still write on the disk of a folder, or of the one in which it
 * would be made; null where the file system does not tell.
 */
export async function freeSpace(folder: string): Promise<number | null> {
  const found = await statfs(folder).catch(() => null);
  if (found !== null) return found.bavail * found.bsize;
  return dirname(folder) === folder ? null : await freeSpace(dirname(folder));
}
