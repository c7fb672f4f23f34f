import { shellWord } from '../core/text/shell.js';
import { chmod, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

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
