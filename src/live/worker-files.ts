import { constants } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { chmod, lstat, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../storage/make-folder.js';
import { isObject, parseJson, textField } from '../core/json.js';

/** Where a worker tells what is being said, as it makes it known to other processes. */
export interface LiveWorker {
  /** `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Empty where none is needed. */
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  readonly namespace: string;
  readonly taskQueue: string;
}

/** A worker with the file that tells of it. */
export interface KnownWorker extends LiveWorker {
  readonly file: string;
}

/** As `announce` names them. */
const NAME = /^\d{1,10}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.json$/;
/** Longer is none of ours: an address, a token, and two names. */
const LONGEST = 8 * 1024;
/** Files that are looked at, of however many there are. */
const MOST_FILES = 1_000;
/** Workers that are read from; each costs a connection for every run that is read. */
const MOST_WORKERS = 64;

function folderOf(home: string): string {
  return join(home, 'live');
}

/**
 * Makes a worker known, to its own user only: the file holds its token. Returns how to take the file away.
 * Rejects where the folder is a link or belongs to somebody else.
 */
export async function announce(home: string, worker: LiveWorker): Promise<() => Promise<void>> {
  const folder = folderOf(home);
  await makeFolder(folder);
  const found = await lstat(folder);
  if (!found.isDirectory() || !isOwn(found)) {
    throw new Error(`${folder}: expected a folder of this user, and no link; remove it`);
  }
  // It may have been there before, open to others.
  if (!isPrivate(found)) await chmod(folder, 0o700);
  const file = join(folder, `${worker.pid}-${randomUUID()}.json`);
  const draft = `${file}.draft`;
  await writeFile(draft, `${JSON.stringify(worker)}\n`, { mode: 0o600, flag: 'wx' });
  await rename(draft, file);
  return () => rm(file, { force: true });
}

/**
 * Looks which workers there are, as often as it is called; a file does not change, so each is read once.
 * A file counts only as `announce` writes it: in a folder, and with a mode, that lets nobody else in. What
 * another user put there, or what came with a repository, is passed over.
 */
export function createWorkerFinder(home: string): () => Promise<readonly KnownWorker[]> {
  const known = new Map<string, KnownWorker | null>();
  return async () => {
    const folder = folderOf(home);
    const names = (await isTrusted(folder)) ? await readdir(folder).catch((): string[] => []) : [];
    const files = new Set(
      names
        .filter((name) => NAME.test(name))
        .slice(0, MOST_FILES)
        .map((name) => join(folder, name)),
    );
    for (const file of known.keys()) if (!files.has(file)) known.delete(file);
    for (const file of files) {
      if (!known.has(file)) known.set(file, await read(file));
    }
    return [...known.values()].filter((worker) => worker !== null).slice(0, MOST_WORKERS);
  };
}

/** The folder itself, not what a link leads to. */
async function isTrusted(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => null);
  return found !== null && found.isDirectory() && isOwn(found) && isPrivate(found);
}

interface Owned {
  readonly uid: number;
  readonly mode: number;
}

/** Windows has no such owners, and keeps the folder of a user to itself. */
function isOwn({ uid }: Owned): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

function isPrivate({ mode }: Owned): boolean {
  return process.getuid === undefined || (mode & 0o077) === 0;
}

/** Takes the file of a worker away that has ended without doing so. */
export async function forget({ file }: KnownWorker): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

/** Whether it ran on this machine and is gone; of other machines nobody can tell. */
export function hasExited({ pid, host }: LiveWorker): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    // There is none, or one of another user: the number has been given to somebody else since.
    return true;
  }
}

/** Null for what is not as `announce` writes it. What is opened is what was looked at. */
async function read(file: string): Promise<KnownWorker | null> {
  const opened = await open(
    file,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  ).catch(() => null);
  if (opened === null) return null;
  try {
    const found = await opened.stat();
    if (!found.isFile() || !isOwn(found) || !isPrivate(found) || found.size > LONGEST) return null;
    const { buffer, bytesRead } = await opened.read(Buffer.alloc(LONGEST), 0, LONGEST, 0);
    return workerIn(file, buffer.toString('utf8', 0, bytesRead));
  } catch {
    return null;
  } finally {
    await opened.close();
  }
}

function workerIn(file: string, text: string): KnownWorker | null {
  const told = parseJson(text);
  if (!isObject(told)) return null;
  const pid = told['pid'];
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return null;
  const worker = {
    file,
    url: textField(told, 'url'),
    token: textField(told, 'token'),
    pid,
    host: textField(told, 'host'),
    namespace: textField(told, 'namespace'),
    taskQueue: textField(told, 'taskQueue'),
  };
  const isSendable = /^[\x21-\x7e]*$/.test(worker.token);
  return isSendable && URL.canParse(worker.url) ? worker : null;
}
