import { randomUUID } from 'node:crypto';
import { link, open, rename, rm } from 'node:fs/promises';
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
