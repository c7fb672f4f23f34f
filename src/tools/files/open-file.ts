import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import path from 'node:path';
import { ToolError } from '../tool-error.js';
import type { ConfinedPath } from './confine.js';
import { fileError, quote } from './fs-error.js';
import { withFolders, type OpenFolders } from './open-folder.js';

/** Windows lacks both flags. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NO_WAIT = constants.O_NONBLOCK ?? 0;

/**
 * Opens an ordinary file, passes it to `use`, and closes it. Every folder on the way is opened
 * without following links, so a link that replaces one leads nowhere.
 *
 * Devices, FIFOs, and sockets are refused before they are opened, since opening a FIFO without a
 * writer never returns, and again afterwards, since the file may have been replaced meanwhile.
 * Throws a `ToolError` in these cases.
 */
export async function withFile<Result>(
  place: ConfinedPath,
  use: (handle: FileHandle, sizeBytes: number) => Promise<Result>,
): Promise<Result> {
  return await withFolders(
    place.root,
    async (folders) => await withFileIn(folders, place, use),
  ).catch((error: unknown) => {
    throw fileError(place.requested, error);
  });
}

/** Does the same as `withFile` for one of several files, with folders that are already open. */
export async function withFileIn<Result>(
  folders: OpenFolders,
  place: Pick<ConfinedPath, 'requested' | 'relative'>,
  use: (handle: FileHandle, sizeBytes: number) => Promise<Result>,
): Promise<Result> {
  try {
    const folder = await folders.open(path.posix.dirname(place.relative));
    const at = folder.at(path.posix.basename(place.relative));
    const before = await lstat(at);
    refuseOther(place.requested, before);
    const handle = await open(at, constants.O_RDONLY | NO_FOLLOW | NO_WAIT);
    try {
      const stats = await handle.stat();
      refuseOther(place.requested, stats);
      await folder.verify(path.posix.basename(place.relative), await handle.stat({ bigint: true }));
      return await use(handle, stats.size);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(place.requested, error);
  }
}

/** Throws a `ToolError` that names the kind of file unless it is an ordinary file. */
export function refuseOther(requested: string, stats: Stats): void {
  if (stats.isFile()) return;
  if (stats.isDirectory())
    throw new ToolError(`${quote(requested)} is a folder; name a file in it`);
  throw new ToolError(
    `${quote(requested)} is ${kindOf(stats)}, not an ordinary file; these tools do not open it`,
  );
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  if (stats.isSymbolicLink()) return 'a symbolic link';
  return 'a device';
}
