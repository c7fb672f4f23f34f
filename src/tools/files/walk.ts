import { lstat, readdir } from 'node:fs/promises';
import type { Dirent } from 'node:fs';
import path from 'node:path';
import type { ConfinedPath } from './confine.js';
import { fileError } from './fs-error.js';
import { withFolders, type OpenFolders } from './open-folder.js';
import { isTemporary } from './temporary-name.js';

const MAX_ENTRIES = 100_000;
/** The maximum number of sizes looked up at once. */
const MAX_PARALLEL = 64;

/** A file or folder that a walk has found. */
export interface WalkEntry {
  /** The path from the root, with `/`. */
  readonly relative: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/** The result of a walk. */
export interface Walked {
  /** Each folder precedes its content; names are in code-unit order, the same on every machine. */
  readonly entries: readonly WalkEntry[];
  /** Folders that were listed but not entered, because their names are skipped. */
  readonly skipped: readonly string[];
  /** Folders that could not be read. */
  readonly unreadable: readonly string[];
  /** Whether the walk ended at 100,000 entries. */
  readonly isCut: boolean;
}

/** How far a walk goes. */
export interface WalkOptions {
  /** The number of folder levels; 1 means only the folder's own entries. */
  readonly levels: number;
  /** Names of folders that are not entered. */
  readonly skip: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/**
 * Lists everything below a folder, at most 100,000 entries. Symbolic links are listed and never
 * followed. Rejects with a `ToolError` if the folder itself cannot be read.
 */
export async function walk(start: ConfinedPath, options: WalkOptions): Promise<Walked> {
  return await withFolders(start.root, (folders) => walkIn(folders, start, options));
}

async function walkIn(
  folders: OpenFolders,
  start: ConfinedPath,
  options: WalkOptions,
): Promise<Walked> {
  const entries: WalkEntry[] = [];
  const skipped: string[] = [];
  const unreadable: string[] = [];
  const visit = async (folder: Pick<WalkEntry, 'relative'>, level: number): Promise<void> => {
    options.signal.throwIfAborted();
    const found = await namesIn(folders, folder.relative).catch((error: unknown) => {
      if (level === 1) throw fileError(start.requested, error);
      unreadable.push(folder.relative);
      return [];
    });
    for (const item of found.toSorted(byName)) {
      if (entries.length >= MAX_ENTRIES) return;
      if (isTemporary(item.name)) continue;
      const relative = folder.relative === '.' ? item.name : `${folder.relative}/${item.name}`;
      const entry = { relative, kind: kindOf(item) };
      entries.push(entry);
      if (entry.kind !== 'folder' || level >= options.levels) continue;
      if (options.skip.has(item.name)) skipped.push(relative);
      else await visit(entry, level + 1);
    }
  };
  await visit(start, 1);
  return { entries, skipped, unreadable, isCut: entries.length >= MAX_ENTRIES };
}

/** Returns whether a place is a folder. Throws a `ToolError` if it no longer exists. */
export async function isFolder(place: ConfinedPath): Promise<boolean> {
  if (place.relative === '.') return true;
  try {
    return await withFolders(place.root, async (folders) => {
      const parent = await folders.open(path.posix.dirname(place.relative));
      const stats = await lstat(parent.at(path.posix.basename(place.relative)));
      await parent.verify();
      return stats.isDirectory();
    });
  } catch (error) {
    throw fileError(place.requested, error);
  }
}

async function namesIn(folders: OpenFolders, relative: string): Promise<readonly Dirent[]> {
  const folder = await folders.open(relative);
  const found = await readdir(folder.at(), { withFileTypes: true });
  await folder.verify();
  return found;
}

/**
 * Returns the sizes of entries below a root in bytes, in the order of `entries`; undefined for an
 * entry that is not a file or has vanished.
 */
export async function sizesOf(
  root: string,
  entries: readonly WalkEntry[],
): Promise<(number | undefined)[]> {
  return await withFolders(root, async (folders) => {
    const sizes: (number | undefined)[] = [];
    for (let at = 0; at < entries.length;) {
      const folder = path.posix.dirname(entries[at]?.relative ?? '');
      const end = entries.findIndex(
        ({ relative }, index) =>
          index > at && (index === at + MAX_PARALLEL || path.posix.dirname(relative) !== folder),
      );
      const batch = entries.slice(at, end === -1 ? undefined : end);
      sizes.push(...(await sizesIn(folders, folder, batch)));
      at += batch.length;
    }
    return sizes;
  });
}

/** Returns the sizes of entries in one folder. */
async function sizesIn(
  folders: OpenFolders,
  relative: string,
  entries: readonly WalkEntry[],
): Promise<(number | undefined)[]> {
  const folder = await folders.open(relative).catch(() => null);
  const found = await Promise.all(
    entries.map(async ({ relative: file, kind }) => {
      if (kind !== 'file' || folder === null) return undefined;
      return await lstat(folder.at(path.posix.basename(file))).catch(() => undefined);
    }),
  );
  await folder?.verify();
  return found.map((stats) => (stats?.isFile() ? stats.size : undefined));
}

function byName(a: Dirent, b: Dirent): number {
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

function kindOf(item: Dirent): WalkEntry['kind'] {
  if (item.isSymbolicLink()) return 'link';
  if (item.isDirectory()) return 'folder';
  return item.isFile() ? 'file' : 'other';
}
