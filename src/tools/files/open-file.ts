import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { ToolError } from '../tool-error.js';
import type { Place } from './confine.js';
import { fileError, quote } from './fs-error.js';

/** Not on Windows. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NO_WAIT = constants.O_NONBLOCK ?? 0;

/**
 * Opens an ordinary file, hands it to `use` and closes it.
 *
 * Devices, FIFOs and sockets are refused before they are opened (a FIFO without a writer would never
 * answer) and once more after: the place may have been replaced, also by a link.
 */
export async function withFile<Result>(
  place: Place,
  use: (handle: FileHandle, sizeBytes: number) => Promise<Result>,
): Promise<Result> {
  try {
    refuseOther(place.asked, await lstat(place.real));
    const handle = await open(place.real, constants.O_RDONLY | NO_FOLLOW | NO_WAIT);
    try {
      const stats = await handle.stat();
      refuseOther(place.asked, stats);
      return await use(handle, stats.size);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(place.asked, error);
  }
}

/** Throws a `ToolError` that names what it is instead of an ordinary file. */
export function refuseOther(asked: string, stats: Stats): void {
  if (stats.isFile()) return;
  if (stats.isDirectory()) throw new ToolError(`${quote(asked)} is a folder; name a file in it`);
  throw new ToolError(
    `${quote(asked)} is ${kindOf(stats)}, not an ordinary file; it is left alone`,
  );
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  if (stats.isSymbolicLink()) return 'a symbolic link';
  return 'a device';
}
