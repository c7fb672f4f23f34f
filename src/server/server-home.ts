import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, lstat, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { NoServerError } from '../core/errors.js';
import { shellWord } from '../core/text/text.js';
import { PRIVATE, describeDiskError, makeFolder } from '../storage/files.js';

/** The names of perdure's own files in PERDURE_HOME. Other files there belong to the user. */
const OWN_NAMES =
  /^(?:temporal\.db(?:-\w+)?|server\.(?:json|log)(?:\..*)?|server\.lock|blobs|archive|live|bin)$/;
const OTHERS = 0o077;

/**
 * A path of PERDURE_HOME that is not private:
 * - `open`: other users can read or write it
 * - `foreign`: another user owns it
 * - `link`: a symbolic link where perdure expects its own file or folder
 */
interface Exposure {
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
async function tighten(home: string): Promise<readonly string[]> {
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

/** The size of a trial file: more than a full file system still accepts. */
const TRIAL_BYTES = 16 * 1024;

/** The files of one embedded server; all paths are absolute. */
export interface ServerHome {
  readonly folder: string;
  readonly databaseFile: string;
  readonly recordFile: string;
  readonly logFile: string;
  readonly lockFolder: string;
  readonly binFolder: string;
}

/**
 * Resolves links, so two spellings of a folder result in the same paths, which are compared with
 * running processes.
 */
export async function locateHome(folder: string): Promise<ServerHome> {
  const absolute = resolve(folder);
  const real = await realpath(absolute).catch(() => absolute);
  return {
    folder: real,
    databaseFile: join(real, 'temporal.db'),
    recordFile: join(real, 'server.json'),
    logFile: join(real, 'server.log'),
    lockFolder: join(real, 'server.lock'),
    binFolder: join(real, 'bin'),
  };
}

interface HomeOptions {
  /** Receives messages, one line each, about what was changed or cannot be changed. */
  readonly note?: ((line: string) => void) | undefined;
  /**
   * Whether this home's server is used: then no other user may own any of its files. Default true.
   */
  readonly embedded?: boolean;
}

/**
 * Creates the folder and makes it private to its owner, because the database holds every
 * conversation. Throws a `NoServerError` that names the problem and the fix.
 */
export async function prepareHome(
  folder: string,
  { note, embedded = true }: HomeOptions = {},
): Promise<ServerHome> {
  const absolute = resolve(folder);
  await makeFolder(absolute).catch((error: unknown) => {
    throw notWritable(absolute, error);
  });
  const home = await locateHome(absolute);
  await makePrivate(absolute, home.folder, { note, embedded });
  return home;
}

/**
 * Throws a `NoServerError` unless a file can be written to the folder. It writes one, because
 * permissions do not show whether the disk is full, read-only, or over its quota.
 */
export async function assertWritable({ folder }: Pick<ServerHome, 'folder'>): Promise<void> {
  const file = join(folder, `.write-${randomUUID()}`);
  try {
    await writeFile(file, Buffer.alloc(TRIAL_BYTES), { flag: 'wx', mode: PRIVATE.file });
  } catch (error) {
    throw notWritable(folder, error);
  } finally {
    await rm(file, { force: true }).catch(() => undefined);
  }
}

function notWritable(folder: string, cause: unknown): NoServerError {
  const reason = cause instanceof Error ? describeDiskError(cause) : String(cause);
  return new NoServerError(`PERDURE_HOME ${folder} cannot be written: ${reason}`, { cause });
}

async function makePrivate(
  named: string,
  real: string,
  { note, embedded }: HomeOptions,
): Promise<void> {
  const found = await exposures(real);
  const link = found.find(({ kind }) => kind === 'link');
  if (link !== undefined) {
    throw new NoServerError(
      `${link.path} is a symbolic link where perdure keeps its own files. ` +
        'Move it away, or set PERDURE_HOME to the folder that you want to use.',
    );
  }
  const foreign = found.find(({ kind }) => kind === 'foreign');
  if (foreign !== undefined) {
    const { path, uid } = foreign;
    const problem = `${path} belongs to user ${uid}, not to you (user ${process.getuid?.()})`;
    if (embedded) {
      throw new NoServerError(
        `${problem}. Run perdure as that user, change its owner, or set PERDURE_HOME to a folder of your own.`,
      );
    }
    note?.(`${problem}: its owner can read and change what your runs store there.`);
  }
  // A planted link would decide which folder becomes private.
  const isLink = (await lstat(named)).isSymbolicLink();
  if (isLink && found.some(({ path, kind }) => path === real && kind === 'open')) {
    throw new NoServerError(
      `PERDURE_HOME ${named} is a symbolic link to ${real}, which other users can read. ` +
        `Make that folder private (chmod 700 ${shellWord(real)}), or set PERDURE_HOME to another one.`,
    );
  }
  const changed = await tighten(real);
  if (changed.length > 0)
    note?.(`${changed.join(', ')}: other users could read this; now only you can.`);
}

/**
 * Returns whether the home has a database, which may hold runs. Such a home uses only its own
 * server.
 */
export async function hasDatabase(home: ServerHome): Promise<boolean> {
  return await stat(home.databaseFile).then(
    (file) => file.size > 0,
    () => false,
  );
}

const OTHERS_MAY_WRITE = 0o022;
const ALL_MAY_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Throws unless a path and its folder belong to this user or root and no other user can change
 * them. Removes the write permission of others from a path that this user owns. Follows links.
 */
export async function assertOwn(path: string): Promise<void> {
  const real = await realpath(path);
  for (const each of [dirname(real), real]) await assertOne(each, each === real);
}

async function assertOne(path: string, canFix: boolean): Promise<void> {
  const { uid, mode } = await stat(path);
  const me = process.getuid?.();
  if (me === undefined) return;
  if (uid !== me && uid !== 0) {
    throw new Error(
      `${path}: expected owner ${me} or root, got user ${uid}; delete it, or change its owner`,
    );
  }
  if ((mode & OTHERS_MAY_WRITE) === 0) return;
  if (uid === me && canFix) return await chmod(path, mode & 0o7777 & ~OTHERS_MAY_WRITE);
  // In a sticky folder such as /tmp, no user can replace the files of another user.
  if ((mode & STICKY) !== 0) return;
  if (uid === me && (mode & ALL_MAY_WRITE) === 0) return;
  throw new Error(
    `${path}: expected a path that other users cannot change; run chmod go-w ${shellWord(path)}`,
  );
}

/** Returns whether every user of the machine can replace a program or its folder. */
export async function isWritableByAll(file: string): Promise<boolean> {
  const real = await realpath(file);
  const modes = await Promise.all([real, dirname(real), dirname(file)].map(modeOf));
  return modes.some((mode) => (mode & ALL_MAY_WRITE) !== 0 && (mode & STICKY) === 0);
}

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode;
}
