import { randomUUID } from 'node:crypto';
import { link, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder } from '../storage/make-folder.js';
import { PRIVATE } from '../storage/private-files.js';
import { processLife } from './process-table.js';
import { NoServerError } from '../core/errors.js';

const POLL_MS = 50;
/** Long enough for the holder to download the server over a slow connection. */
const WAIT_LIMIT_MS = 300_000;

export interface LockOptions {
  /** Called once with the pid of the holder if another running process holds the lock. */
  readonly onWait?: (pid: string) => void;
  readonly waitLimitMs?: number;
}

/**
 * Runs `work` while no other process on this machine does so for the same folder. Throws a
 * `NoServerError` if the lock stays held for too long.
 *
 * The lock is a series of numbered files. The highest one names the holder. A file is created in
 * one step, only its creator replaces it, and the highest one is never deleted. A process takes
 * over the lock of a dead holder by creating the next number, which only one process can do.
 */
export async function withStartLock<T>(
  folder: string,
  work: () => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  await makeFolder(folder);
  const place = await acquire(folder, options);
  try {
    return await work();
  } finally {
    await publish(place, RELEASED, rename);
  }
}

const RELEASED = 'released';

async function acquire(folder: string, options: LockOptions): Promise<string> {
  const self = (await processLife(process.pid)) ?? String(process.pid);
  const deadline = performance.now() + (options.waitLimitMs ?? WAIT_LIMIT_MS);
  let waiting = false;
  for (;;) {
    const highest = (await generations(folder))[0] ?? 0;
    const holder = await liveHolder(join(folder, String(highest)));
    if (holder === null) {
      const place = await claim(folder, highest + 1, self);
      if (place !== null) return place;
      continue;
    }
    if (!waiting) options.onWait?.(pidOf(holder));
    waiting = true;
    if (performance.now() > deadline) {
      throw new NoServerError(
        `Process ${pidOf(holder)} has been starting the Temporal server for too long ` +
          `(lock ${folder}). End that process, or delete the lock folder if the process is not perdure.`,
      );
    }
    await sleep(POLL_MS);
  }
}

/** Returns the path of the new generation; null if another process was faster. */
async function claim(folder: string, generation: number, owner: string): Promise<string | null> {
  const place = join(folder, String(generation));
  if (!(await publish(place, owner, link))) return null;
  const all = await generations(folder);
  if (all.some((other) => other > generation)) {
    // Our number was free only because a later holder had deleted the older files.
    await rm(place, { force: true });
    return null;
  }
  const older = all.filter((other) => other < generation);
  await Promise.all(older.map((other) => rm(join(folder, String(other)), { force: true })));
  return place;
}

/** Returns the numbers of the lock files, newest first. */
async function generations(folder: string): Promise<readonly number[]> {
  const names = (await readdir(folder)).filter((name) => /^\d+$/.test(name));
  return names.map(Number).toSorted((a, b) => b - a);
}

async function liveHolder(file: string): Promise<string | null> {
  const holder = await readFile(file, 'utf8').catch(() => RELEASED);
  const pid = Number(pidOf(holder));
  if (!Number.isInteger(pid) || pid < 1) return null;
  return (await processLife(pid)) === holder ? holder : null;
}

function pidOf(holder: string): string {
  return holder.split('@')[0] ?? '';
}

/**
 * Puts a complete file in place in one step. Returns false if `put` fails because the file exists.
 */
async function publish(
  place: string,
  text: string,
  put: (draft: string, place: string) => Promise<void>,
): Promise<boolean> {
  const draft = `${place}.${randomUUID()}`;
  await writeFile(draft, text, { mode: PRIVATE.file });
  try {
    await put(draft, place);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
