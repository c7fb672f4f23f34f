import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, lstat, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJson } from '../core/text/json.js';
import { makeFolder } from './files.js';

/** File names as `announceIn` writes them. */
const FILE_NAME = /^\d{1,10}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.json$/;
/** A larger file was not written by `announceIn`: it writes addresses, a token, and names. */
const MAX_FILE_BYTES = 8 * 1024;
/** The maximum number of files that a scan lists. */
const MAX_FILES = 1_000;

/**
 * Announces what a process serves to other processes of the same user: only they may read the file.
 * Returns a function that removes it. Rejects if the folder is a link or belongs to another user.
 */
export async function announceIn(
  folder: string,
  served: { readonly pid: number },
): Promise<() => Promise<void>> {
  await makeFolder(folder);
  const found = await lstat(folder);
  if (!found.isDirectory() || !isOwn(found)) {
    throw new Error(`${folder}: expected a folder of this user, and no link; remove it`);
  }
  // A folder that existed before may be open to other users.
  if (!isPrivate(found)) await chmod(folder, 0o700);
  const file = join(folder, `${served.pid}-${randomUUID()}.json`);
  const draft = `${file}.draft`;
  await writeFile(draft, `${JSON.stringify(served)}\n`, { mode: 0o600, flag: 'wx' });
  await rename(draft, file);
  return () => rm(file, { force: true });
}

/** Returns the paths of the announcements in a folder; none if other users may write to it. */
export async function announcedIn(folder: string): Promise<readonly string[]> {
  if (!(await isTrusted(folder))) return [];
  const names = await readdir(folder).catch((): string[] => []);
  return names
    .filter((name) => FILE_NAME.test(name))
    .slice(0, MAX_FILES)
    .map((name) => join(folder, name));
}

/**
 * Returns the JSON of an announcement; null if it is none. A file counts only if its owner and mode are
 * as `announceIn` sets them. Checks the file that was opened.
 */
export async function readAnnouncement(file: string): Promise<unknown> {
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
    return parseJson(buffer.toString('utf8', 0, bytesRead)) ?? null;
  } catch {
    return null;
  } finally {
    await opened.close();
  }
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
