import { randomUUID } from 'node:crypto';
import { link, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeFolder } from '../storage/make-folder.js';
import { PRIVATE } from '../storage/private-files.js';
import { processLife } from './process-table.js';
import { NoServerError } from '../core/errors.js';

const POLL_MS = 50;
/** Long enough for the holder to download the server over a slow line. */
const WAIT_LIMIT_MS = 300_000;

export interface LockOptions {
  /** Called once, with its pid, if the lock is held by another living process. */
  readonly onWait?: (pid: string) => void;
  readonly waitLimitMs?: number;
}

/**
 * Runs `work` while no other process of this machine does so for the same folder.
 *
 * The lock is a row of numbered files; the highest one tells who holds it. A file is made whole in
 * one step and never written again but by its maker, and the highest one is never deleted: so a
 * lock whose holder has died is taken over by making the next number, which only one can do.
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
  const mine = (await processLife(process.pid)) ?? String(process.pid);
  const deadline = Date.now() + (options.waitLimitMs ?? WAIT_LIMIT_MS);
  let waiting = false;
  for (;;) {
    const highest = (await generations(folder))[0] ?? 0;
    const holder = await livingHolder(join(folder, String(highest)));
    if (holder === null) {
      const place = await claim(folder, highest + 1, mine);
      if (place !== null) return place;
      continue;
    }
    if (!waiting) options.onWait?.(pidOf(holder));
    waiting = true;
    if (Date.now() > deadline) {
      throw new NoServerError(
        `Process ${pidOf(holder)} has been starting the Temporal server for too long ` +
          `(lock ${folder}). End that process, or delete the lock folder if it has nothing to do with perdure.`,
      );
    }
    await pause(POLL_MS);
  }
}

/** The path of the new generation, or null if another process was quicker. */
async function claim(folder: string, generation: number, owner: string): Promise<string | null> {
  const place = join(folder, String(generation));
  if (!(await publish(place, owner, link))) return null;
  const all = await generations(folder);
  if (all.some((other) => other > generation)) {
    // Our number was free again because a later holder had cleaned up behind itself.
    await rm(place, { force: true });
    return null;
  }
  const older = all.filter((other) => other < generation);
  await Promise.all(older.map((other) => rm(join(folder, String(other)), { force: true })));
  return place;
}

/** Newest first. */
async function generations(folder: string): Promise<readonly number[]> {
  const names = (await readdir(folder)).filter((name) => /^\d+$/.test(name));
  return names.map(Number).toSorted((a, b) => b - a);
}

async function livingHolder(file: string): Promise<string | null> {
  const holder = await readFile(file, 'utf8').catch(() => RELEASED);
  const pid = Number(pidOf(holder));
  if (!Number.isInteger(pid) || pid < 1) return null;
  return (await processLife(pid)) === holder ? holder : null;
}

function pidOf(holder: string): string {
  return holder.split('@')[0] ?? '';
}

/** Puts a whole file in place in one step; false if `put` refuses because there is one already. */
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
