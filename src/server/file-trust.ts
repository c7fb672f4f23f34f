import { chmod, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const OTHERS_MAY_WRITE = 0o022;
const ALL_MAY_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Throws unless a file or folder, and the folder in which it lies, are this user's or root's and no
 * other user can change them. What this user owns is corrected. Links are followed.
 */
export async function assertOwn(path: string): Promise<void> {
  const real = await realpath(path);
  for (const each of [dirname(real), real]) await assertOne(each, each === real);
}

async function assertOne(path: string, isCorrected: boolean): Promise<void> {
  const { uid, mode } = await stat(path);
  const me = process.getuid?.();
  if (me === undefined) return;
  if (uid !== me && uid !== 0) {
    throw new Error(
      `${path} belongs to user ${uid} and is not trusted; delete it, or change its owner`,
    );
  }
  if ((mode & OTHERS_MAY_WRITE) === 0) return;
  if (uid === me && isCorrected) return await chmod(path, mode & 0o7777 & ~OTHERS_MAY_WRITE);
  // In a sticky folder such as /tmp nobody can replace what another user owns.
  if ((mode & STICKY) !== 0) return;
  if (uid === me && (mode & ALL_MAY_WRITE) === 0) return;
  throw new Error(`${path} can be changed by other users and is not trusted: chmod go-w ${path}`);
}

/** Whether every user of the machine can replace a program, by itself or by its folder. */
export async function isWritableByAll(file: string): Promise<boolean> {
  const real = await realpath(file);
  const modes = await Promise.all([real, dirname(real), dirname(file)].map(modeOf));
  return modes.some((mode) => (mode & ALL_MAY_WRITE) !== 0 && (mode & STICKY) === 0);
}

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode;
}
