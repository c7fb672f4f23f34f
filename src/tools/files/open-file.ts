import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import path from 'node:path';
import { ToolError } from '../tool-error.js';
import type { Place } from './confine.js';
import { fileError, quote } from './fs-error.js';
import { withFolders, type OpenFolders } from './open-folder.js';

/** Not on Windows. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NO_WAIT = constants.O_NONBLOCK ?? 0;

/**
 * Opens an ordinary file, hands it to `use` and closes it. Every folder on the way is opened as the
 * folder that it is: a link in its place leads nowhere.
 *
 * Devices, FIFOs and sockets are refused before they are opened (a FIFO without a writer would never
 * answer) and once more after: the place may have been replaced, also by a link.
 */
export async function withFile<Result>(
  place: Place,
  use: (handle: FileHandle, sizeBytes: number) => Promise<Result>,
): Promise<Result> {
  return await withFolders(
    place.root,
    async (folders) => await withFileIn(folders, place, use),
  ).catch((error: unknown) => {
    throw fileError(place.asked, error);
  });
}

/** The same for one file of many, with folders that are open already. */
export async function withFileIn<Result>(
  folders: OpenFolders,
  place: Pick<Place, 'asked' | 'relative'>,
  use: (handle: FileHandle, sizeBytes: number) => Promise<Result>,
): Promise<Result> {
  try {
    const folder = await folders.open(path.posix.dirname(place.relative));
    const at = folder.at(path.posix.basename(place.relative));
    const before = await lstat(at);
    refuseOther(place.asked, before);
    const handle = await open(at, constants.O_RDONLY | NO_FOLLOW | NO_WAIT);
    try {
      const stats = await handle.stat();
      refuseOther(place.asked, stats);
      await folder.verify(path.posix.basename(place.relative), await handle.stat({ bigint: true }));
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
