import { randomUUID } from 'node:crypto';
import { lstat, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder } from '../storage/make-folder.js';
import { diskCure } from '../storage/disk-cures.js';
import { PRIVATE } from '../storage/private-files.js';
import { exposures, tighten } from './home-permissions.js';
import { NoServerError } from '../core/errors.js';

/** More than what a full file system still takes by the way. */
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

/** Two spellings of one folder give the same paths, as those are compared with running processes. */
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
  /** Hears, in lines for people, what was changed and what cannot be. */
  readonly say?: ((line: string) => void) | undefined;
  /** Whether a server of this home is used: then nobody else may own anything of it. */
  readonly embedded?: boolean;
}

/**
 * Makes the folder, and makes it private to its owner: the database holds every conversation.
 * Rejects with a `NoServerError` that names what stands in the way.
 */
export async function prepareHome(
  folder: string,
  { say, embedded = true }: HomeOptions = {},
): Promise<ServerHome> {
  const absolute = resolve(folder);
  await makeFolder(absolute).catch((error: unknown) => {
    throw notWritable(absolute, error);
  });
  const home = await locateHome(absolute);
  await makePrivate(absolute, home.folder, { say, embedded });
  return home;
}

/**
 * Rejects with a `NoServerError` unless a file can be written to the folder. Permissions alone do not
 * tell: the disk may be full, read-only, or beyond its quota.
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
  const why = cause instanceof Error ? diskCure(cause) : String(cause);
  return new NoServerError(`PERDURE_HOME ${folder} cannot be written: ${why}`, { cause });
}

async function makePrivate(
  named: string,
  real: string,
  { say, embedded }: HomeOptions,
): Promise<void> {
  const found = await exposures(real);
  const link = found.find(({ kind }) => kind === 'link');
  if (link !== undefined) {
    throw new NoServerError(
      `${link.path} is a symbolic link, in the place of what perdure keeps there. ` +
        'Move it away, or set PERDURE_HOME to the folder that you want to use.',
    );
  }
  const foreign = found.find(({ kind }) => kind === 'foreign');
  if (foreign !== undefined) {
    const { path, uid } = foreign;
    const whose = `${path} belongs to user ${uid}, not to you (user ${process.getuid?.()})`;
    if (embedded) {
      throw new NoServerError(
        `${whose}. Run perdure as that user, change its owner, or set PERDURE_HOME to a folder of your own.`,
      );
    }
    say?.(`${whose}: its owner can read and change what your runs keep there.`);
  }
  // Whoever planted a link to a folder decides what would become private.
  const isLink = (await lstat(named)).isSymbolicLink();
  if (isLink && found.some(({ path, kind }) => path === real && kind === 'open')) {
    throw new NoServerError(
      `PERDURE_HOME ${named} is a symbolic link to ${real}, which other users can read. ` +
        `Make that folder private (chmod 700 ${real}), or set PERDURE_HOME to another one.`,
    );
  }
  const changed = await tighten(real);
  if (changed.length > 0)
    say?.(`${changed.join(', ')}: other users could read this; now only you.`);
}

/** Whether runs may lie here: a home with a database keeps to its own server. */
export async function hasDatabase(home: ServerHome): Promise<boolean> {
  return await stat(home.databaseFile).then(
    (file) => file.size > 0,
    () => false,
  );
}
