import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PRIVATE } from './private-files.js';

/**
 * Makes a folder, and those above it that are missing, for this user alone; one that is there stays
 * as it is. Rejects with the error of the file system. Node's own `recursive` never returns where a
 * file system takes no folders at all, such as /proc.
 */
export async function makeFolder(folder: string): Promise<void> {
  try {
    return await makeOne(folder);
  } catch (error) {
    const parent = dirname(folder);
    if (codeOf(error) !== 'ENOENT' || parent === folder) throw error;
    await makeFolder(parent);
  }
  // Another process may have made the parent meanwhile, so what counts is whether it works now.
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

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
