import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { makeFolder } from './make-folder.js';
import { PRIVATE } from './private-files.js';
import { syncFolder } from './sync-folder.js';

/**
 * Writes a file and creates its missing parent folders. The bytes go to a temporary file, which is
 * flushed to disk and renamed, so a reader sees the whole file or none. Rejects with the error of
 * the file system.
 */
export async function writeWhole(file: string, bytes: Buffer): Promise<void> {
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
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(path.dirname(file));
}
