import type { Stats } from 'node:fs';
import { chmod, lstat, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, sep } from 'node:path';
import { PRIVATE } from '../storage/private-files.js';

/** The names of perdure's own files in PERDURE_HOME. Other files there belong to the user. */
const OWN_NAMES =
  /^(?:temporal\.db(?:-\w+)?|server\.(?:json|log)(?:\..*)?|server\.lock|blobs|archive|live|bin)$/;
const OTHERS = 0o077;
const STICKY = 0o1000;

/**
 * A path of PERDURE_HOME that is not private:
 * - `open`: other users can read or write it
 * - `foreign`: another user owns it
 * - `link`: a symbolic link where perdure expects its own file or folder
 */
export interface Exposure {
  readonly path: string;
  readonly kind: 'open' | 'foreign' | 'link';
  readonly mode: number;
  readonly uid: number;
}

/** Checks PERDURE_HOME, an absolute path, and perdure's files in it. Changes nothing. */
export async function exposures(home: string): Promise<readonly Exposure[]> {
  const root = await lstat(home).catch(() => null);
  if (root === null || process.getuid === undefined) return [];
  const found: Exposure[] = [];
  if (!root.isSymbolicLink()) found.push(...exposureOf(home, root));
  for (const path of await ownPaths(home)) {
    // A private folder protects its entries, so they are not checked.
    const stats = await lstat(path).catch(() => null);
    if (stats !== null) found.push(...exposureOf(path, stats));
  }
  return found;
}

/**
 * Removes the permissions of other users on PERDURE_HOME and on perdure's files in it, where this
 * user owns them. A folder that also serves another purpose, such as a home directory, keeps its
 * mode. Returns the paths that were open.
 */
export async function tighten(home: string): Promise<readonly string[]> {
  const open = (await exposures(home)).filter(({ kind }) => kind === 'open');
  const changed: string[] = [];
  for (const { path, mode } of open) {
    if (path === home && isShared(home, mode)) continue;
    if (path === home) await chmod(home, PRIVATE.folder);
    else await restrict(path);
    changed.push(path);
  }
  return changed;
}

/**
 * Returns whether the folder has other uses: it is sticky, or contains the working or home
 * directory.
 */
function isShared(home: string, mode: number): boolean {
  const parents = [process.cwd(), homedir()];
  return (
    (mode & STICKY) !== 0 || parents.some((parent) => `${parent}${sep}`.startsWith(`${home}${sep}`))
  );
}

async function ownPaths(home: string): Promise<readonly string[]> {
  const names = await readdir(home).catch((): string[] => []);
  return names.filter((name) => OWN_NAMES.test(name)).map((name) => join(home, name));
}

function exposureOf(path: string, stats: Stats): readonly Exposure[] {
  const { uid } = stats;
  const mode = stats.mode & 0o7777;
  if (stats.isSymbolicLink()) return [{ path, kind: 'link', mode, uid }];
  if (uid !== process.getuid?.()) return [{ path, kind: 'foreign', mode, uid }];
  return (mode & OTHERS) === 0 ? [] : [{ path, kind: 'open', mode, uid }];
}

/** Restricts folders before their entries: in a private folder, no other user can plant a link. */
async function restrict(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null || stats.uid !== process.getuid?.()) return;
  const isProgram = (stats.mode & 0o100) !== 0;
  if (stats.isFile()) return await chmod(path, isProgram ? PRIVATE.folder : PRIVATE.file);
  if (!stats.isDirectory()) return;
  await chmod(path, PRIVATE.folder);
  for (const name of await readdir(path)) await restrict(join(path, name));
}
