import type { Stats } from 'node:fs';
import { chmod, lstat, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, sep } from 'node:path';
import { PRIVATE } from '../storage/private-files.js';

/** What perdure puts into PERDURE_HOME; anything else there is somebody's own. */
const OURS =
  /^(?:temporal\.db(?:-\w+)?|server\.(?:json|log)(?:\..*)?|server\.lock|blobs|archive|live|bin)$/;
const OTHERS = 0o077;
const STICKY = 0o1000;

/**
 * - `open`: other users may read or write it
 * - `foreign`: another user owns it
 * - `link`: a symbolic link in the place of a file or folder of perdure
 */
export interface Exposure {
  readonly path: string;
  readonly kind: 'open' | 'foreign' | 'link';
  readonly mode: number;
  readonly uid: number;
}

/** Examines PERDURE_HOME, an absolute path, and what perdure has in it. Changes nothing. */
export async function exposures(home: string): Promise<readonly Exposure[]> {
  const root = await lstat(home).catch(() => null);
  if (root === null || process.getuid === undefined) return [];
  const found: Exposure[] = [];
  if (!root.isSymbolicLink()) found.push(...exposureOf(home, root));
  for (const path of await ours(home)) {
    // A private folder protects what is in it, so its entries are not looked at.
    const stats = await lstat(path).catch(() => null);
    if (stats !== null) found.push(...exposureOf(path, stats));
  }
  return found;
}

/**
 * Takes away what other users may do with PERDURE_HOME and with what perdure has in it, as far as
 * this user owns it. Folders that also serve something else, such as a home directory, keep their
 * mode; what is in them is private all the same. @returns the paths that were open
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

/** A folder that many use, or that holds more than this home. */
function isShared(home: string, mode: number): boolean {
  const parents = [process.cwd(), homedir()];
  return (mode & STICKY) !== 0 || parents.some((one) => `${one}${sep}`.startsWith(`${home}${sep}`));
}

async function ours(home: string): Promise<readonly string[]> {
  const names = await readdir(home).catch((): string[] => []);
  return names.filter((name) => OURS.test(name)).map((name) => join(home, name));
}

function exposureOf(path: string, stats: Stats): readonly Exposure[] {
  const { uid } = stats;
  const mode = stats.mode & 0o7777;
  if (stats.isSymbolicLink()) return [{ path, kind: 'link', mode, uid }];
  if (uid !== process.getuid?.()) return [{ path, kind: 'foreign', mode, uid }];
  return (mode & OTHERS) === 0 ? [] : [{ path, kind: 'open', mode, uid }];
}

/** From the outside in: once a folder is private, nobody can put a link in the place of an entry. */
async function restrict(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null || stats.uid !== process.getuid?.()) return;
  const isProgram = (stats.mode & 0o100) !== 0;
  if (stats.isFile()) return await chmod(path, isProgram ? PRIVATE.folder : PRIVATE.file);
  if (!stats.isDirectory()) return;
  await chmod(path, PRIVATE.folder);
  for (const name of await readdir(path)) await restrict(join(path, name));
}
