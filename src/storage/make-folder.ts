import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PRIVATE } from './private-files.js';

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

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
