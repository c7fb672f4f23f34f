import { shellWord } from '../core/text/shell.js';
import { randomUUID } from 'node:crypto';
import { lstat, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder } from '../storage/make-folder.js';
import { describeDiskError } from '../storage/disk-fixes.js';
import { PRIVATE } from '../storage/private-files.js';
import { exposures, tighten } from './home-permissions.js';
import { NoServerError } from '../core/errors.js';

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

export interface HomeOptions {
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
