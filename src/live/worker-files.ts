import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isObject, parseJson, textOf } from '../core/json.js';

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

function folderOf(home: string): string {
  return join(home, 'live');
}

/** Makes a worker known, to its own user only: the file holds its token. @returns how to unsay it */
export async function announce(home: string, worker: LiveWorker): Promise<() => Promise<void>> {
  const folder = folderOf(home);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `${worker.pid}-${randomUUID()}.json`);
  const draft = `${file}.draft`;
  await writeFile(draft, `${JSON.stringify(worker)}\n`, { mode: 0o600 });
  await rename(draft, file);
  return () => rm(file, { force: true });
}

/** Looks who is there, as often as it is asked; a file does not change, so each is read once. */
export function createLookout(home: string): () => Promise<readonly KnownWorker[]> {
  const known = new Map<string, KnownWorker | null>();
  return async () => {
    const folder = folderOf(home);
    const names = await readdir(folder).catch((): string[] => []);
    const files = names.filter((name) => name.endsWith('.json')).map((name) => join(folder, name));
    for (const file of known.keys()) if (!files.includes(file)) known.delete(file);
    for (const file of files) {
      if (!known.has(file)) known.set(file, await read(file));
    }
    return [...known.values()].filter((worker) => worker !== null);
  };
}

/** Takes the file of a worker away that has ended without doing so. */
export async function forget({ file }: KnownWorker): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

/** Whether it ran on this machine and is gone; of other machines nobody can tell. */
export function isGone({ pid, host }: LiveWorker): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

/** Null for what nobody here has written. */
async function read(file: string): Promise<KnownWorker | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const told = parseJson(text);
  if (!isObject(told) || !URL.canParse(textOf(told, 'url'))) return null;
  return {
    file,
    url: textOf(told, 'url'),
    token: textOf(told, 'token'),
    pid: Number(told['pid']),
    host: textOf(told, 'host'),
    namespace: textOf(told, 'namespace'),
    taskQueue: textOf(told, 'taskQueue'),
  };
}
