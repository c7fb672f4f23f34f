import { lstat, readdir } from 'node:fs/promises';
import type { Dirent } from 'node:fs';
import path from 'node:path';
import type { Place } from './confine.js';
import { fileError } from './fs-error.js';
import { isTemporary } from './temporary-name.js';

const MAX_ENTRIES = 100_000;

export interface Entry {
  /** From the root, with `/`. */
  readonly relative: string;
  readonly real: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

export interface Walked {
  /** Each folder before its content, names in code-unit order: the same on every machine. */
  readonly entries: readonly Entry[];
  /** Folders that were listed but not entered: the skipped names. */
  readonly skipped: readonly string[];
  /** Folders that could not be read. */
  readonly unreadable: readonly string[];
  /** Whether the walk ended at 100,000 entries. */
  readonly isCut: boolean;
}

export interface WalkOptions {
  /** 1: only the folder's own entries. */
  readonly levels: number;
  /** Names of folders that are not entered. */
  readonly skip: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/** Lists what lies below a folder. Symbolic links are named and never followed. */
export async function walk(start: Place, options: WalkOptions): Promise<Walked> {
  const entries: Entry[] = [];
  const skipped: string[] = [];
  const unreadable: string[] = [];
  const visit = async (
    folder: { real: string; relative: string },
    level: number,
  ): Promise<void> => {
    options.signal.throwIfAborted();
    const found = await readdir(folder.real, { withFileTypes: true }).catch((error: unknown) => {
      if (level === 1) throw fileError(start.asked, error);
      unreadable.push(folder.relative);
      return [];
    });
    for (const item of found.toSorted(byName)) {
      if (entries.length >= MAX_ENTRIES) return;
      if (isTemporary(item.name)) continue;
      const relative = folder.relative === '.' ? item.name : `${folder.relative}/${item.name}`;
      const entry = { relative, real: path.join(folder.real, item.name), kind: kindOf(item) };
      entries.push(entry);
      if (entry.kind !== 'folder' || level >= options.levels) continue;
      if (options.skip.has(item.name)) skipped.push(relative);
      else await visit(entry, level + 1);
    }
  };
  await visit(start, 1);
  return { entries, skipped, unreadable, isCut: entries.length >= MAX_ENTRIES };
}

/** Sizes in bytes, in the order of `entries`; undefined for what is no file or has vanished. */
export async function sizesOf(entries: readonly Entry[]): Promise<(number | undefined)[]> {
  const sizes: (number | undefined)[] = [];
  for (let at = 0; at < entries.length; at += 64) {
    const batch = entries.slice(at, at + 64).map(async ({ real, kind }) => {
      const stats = kind === 'file' ? await lstat(real).catch(() => undefined) : undefined;
      return stats?.size;
    });
    sizes.push(...(await Promise.all(batch)));
  }
  return sizes;
}

function byName(a: Dirent, b: Dirent): number {
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

function kindOf(item: Dirent): Entry['kind'] {
  if (item.isSymbolicLink()) return 'link';
  if (item.isDirectory()) return 'folder';
  return item.isFile() ? 'file' : 'other';
}
