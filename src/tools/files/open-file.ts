import { type Stats, constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import path from 'node:path';
import { ToolError } from '../errors.js';
import { type ConfinedPath, type OpenFolders, fileError, quote, withFolders } from './confine.js';
import type { NameGuard } from './name-guard.js';

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

const CHUNK_BYTES = 64 * 1024;
const SNIFF_BYTES = 8 * 1024;

/** Reads a file in chunks from its start; each chunk is valid until the next one is read. */
export async function* chunksOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let position = 0; ;) {
    signal.throwIfAborted();
    const { bytesRead, buffer } = await handle.read(
      Buffer.allocUnsafe(CHUNK_BYTES),
      0,
      CHUNK_BYTES,
      position,
    );
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Returns whether the first 8 KiB of a file contain a NUL or are not UTF-8. */
export function isBinary(start: Buffer): boolean {
  const sniffed = start.subarray(0, SNIFF_BYTES);
  if (sniffed.includes(0)) return true;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(sniffed, { stream: true });
    return false;
  } catch {
    return true;
  }
}

/** Formats a size for people and models: `412 bytes`, `3.1 kB`, `12 MB`. */
export function readableSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const exponent = Math.min(Math.floor(Math.log10(bytes) / 3), units.length);
  const value = bytes / 1_000 ** exponent;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[exponent - 1]}`;
}

/** The settings that all file tools of one root share. */
export interface FileToolSettings {
  /** Absolute path of the folder that the tools are confined to. */
  readonly root: string;
  /** The size in bytes of the largest file that is searched, counted to its end, or written. */
  readonly maxFileBytes: number;
  /** Names of folders that are entered only if `path` names them, and never written to. */
  readonly skip: ReadonlySet<string>;
  readonly guard: NameGuard;
}
