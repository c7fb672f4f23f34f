import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, lstat, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject, parseJson, textField } from '../core/json.js';
import { makeFolder } from '../storage/make-folder.js';

/** The address at which a worker serves live deltas, as announced to other processes. */
export interface LiveWorker {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The token that readers must send; empty if none is needed. */
  readonly token: string;
  readonly pid: number;
  readonly host: string;
  readonly namespace: string;
  readonly taskQueue: string;
}

/** A worker with the file that announces it. */
export interface KnownWorker extends LiveWorker {
  readonly file: string;
}

/** File names as `announce` writes them. */
const FILE_NAME = /^\d{1,10}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.json$/;
/** A larger file was not written by `announce`: it writes an address, a token, and three names. */
const MAX_FILE_BYTES = 8 * 1024;
/** The maximum number of files that a scan reads. */
const MAX_FILES = 1_000;
/** The maximum number of workers to read from. Each costs one connection per run that is read. */
const MAX_WORKERS = 64;

function folderIn(home: string): string {
  return join(home, 'live');
}

/**
 * Announces a worker to processes of the same user: only they may read the file, which holds the
 * token. Returns a function that removes the file. Rejects if the folder is a link or belongs to
 * another user.
 */
export async function announce(home: string, worker: LiveWorker): Promise<() => Promise<void>> {
  const folder = folderIn(home);
  await makeFolder(folder);
  const found = await lstat(folder);
  if (!found.isDirectory() || !isOwn(found)) {
    throw new Error(`${folder}: expected a folder of this user, and no link; remove it`);
  }
  // A folder that existed before may be open to other users.
  if (!isPrivate(found)) await chmod(folder, 0o700);
  const file = join(folder, `${worker.pid}-${randomUUID()}.json`);
  const draft = `${file}.draft`;
  await writeFile(draft, `${JSON.stringify(worker)}\n`, { mode: 0o600, flag: 'wx' });
  await rename(draft, file);
  return () => rm(file, { force: true });
}

/**
 * Returns a function that lists the announced workers. Files never change, so each is read only
 * once. A file counts only if its owner and mode are as `announce` sets them, in a folder that is
 * also private. Files of other users, and files that came with a repository, are ignored.
 */
export function createWorkerFinder(home: string): () => Promise<readonly KnownWorker[]> {
  const known = new Map<string, KnownWorker | null>();
  return async () => {
    const folder = folderIn(home);
    const names = (await isTrusted(folder)) ? await readdir(folder).catch((): string[] => []) : [];
    const files = new Set(
      names
        .filter((name) => FILE_NAME.test(name))
        .slice(0, MAX_FILES)
        .map((name) => join(folder, name)),
    );
    for (const file of known.keys()) if (!files.has(file)) known.delete(file);
    for (const file of files) {
      if (!known.has(file)) known.set(file, await readWorker(file));
    }
    return [...known.values()].filter((worker) => worker !== null).slice(0, MAX_WORKERS);
  };
}

/** Checks the folder itself, not the target of a link. */
async function isTrusted(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => null);
  return found !== null && found.isDirectory() && isOwn(found) && isPrivate(found);
}

interface Ownership {
  readonly uid: number;
  readonly mode: number;
}

/** Windows has no such owners; it keeps the home folder of a user private. */
function isOwn({ uid }: Ownership): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

function isPrivate({ mode }: Ownership): boolean {
  return process.getuid === undefined || (mode & 0o077) === 0;
}

/** Removes the file of a worker that has ended without removing it. */
export async function removeFile({ file }: KnownWorker): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

/**
 * Returns null if the file does not have the form that `announce` writes. Checks the file that was
 * opened.
 */
async function readWorker(file: string): Promise<KnownWorker | null> {
  const opened = await open(
    file,
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  ).catch(() => null);
  if (opened === null) return null;
  try {
    const found = await opened.stat();
    if (!found.isFile() || !isOwn(found) || !isPrivate(found)) return null;
    if (found.size > MAX_FILE_BYTES) return null;
    const { buffer, bytesRead } = await opened.read(
      Buffer.alloc(MAX_FILE_BYTES),
      0,
      MAX_FILE_BYTES,
      0,
    );
    return parseWorker(file, buffer.toString('utf8', 0, bytesRead));
  } catch {
    return null;
  } finally {
    await opened.close();
  }
}

function parseWorker(file: string, text: string): KnownWorker | null {
  const json = parseJson(text);
  if (!isObject(json)) return null;
  const pid = json['pid'];
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return null;
  const worker = {
    file,
    url: textField(json, 'url'),
    token: textField(json, 'token'),
    pid,
    host: textField(json, 'host'),
    namespace: textField(json, 'namespace'),
    taskQueue: textField(json, 'taskQueue'),
  };
  const isHeaderSafe = /^[\x21-\x7e]*$/.test(worker.token);
  return isHeaderSafe && URL.canParse(worker.url) ? worker : null;
}
