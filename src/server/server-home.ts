import { constants } from 'node:fs';
import { access, mkdir, realpath, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { NoServerError, messageOf } from './server-error.js';

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

/** Makes the folder, private to its owner: the database holds every conversation. */
export async function prepareHome(folder: string): Promise<ServerHome> {
  const absolute = resolve(folder);
  try {
    await mkdir(absolute, { recursive: true, mode: 0o700 });
    await access(absolute, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new NoServerError(
      `PERDURE_HOME ${absolute} cannot be written (${messageOf(error)}). ` +
        'Make it writable or set PERDURE_HOME to a folder that is.',
    );
  }
  return await locateHome(absolute);
}

/** Whether runs may lie here: a home with a database keeps to its own server. */
export async function hasDatabase(home: ServerHome): Promise<boolean> {
  return await stat(home.databaseFile).then(
    (file) => file.size > 0,
    () => false,
  );
}
