import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs';
import { basename, extname, join } from 'node:path';

/** Editors write a file in several steps, and people save several files at once. */
const SETTLE_MS = 200;
const CODE = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.json']);
const SKIPPED = new Set(['node_modules', 'dist']);

export interface CodeWatch {
  readonly folder: string;
  /** Whether a change of this file counts; default: code and JSON. */
  readonly counts?: (name: string) => boolean;
  /** Also below the folder, except in `node_modules`, `dist` and what begins with a dot. */
  readonly deep: boolean;
}

/**
 * Calls back once after changes have settled, with the path of the last one. One watch per folder:
 * the recursive watch of Node looks into `node_modules` too. Gives what ends the watch.
 */
export function watchCode(
  { folder, counts = isCode, deep }: CodeWatch,
  changed: (file: string) => void,
): () => void {
  const watchers = new Map<string, FSWatcher>();
  let timer: NodeJS.Timeout | undefined;

  const noticed = (path: string): void => {
    clearTimeout(timer);
    timer = setTimeout(() => changed(path), SETTLE_MS);
  };
  const enter = (path: string): void => {
    if (watchers.has(path)) return;
    try {
      const watcher = watch(path, (_, name) => {
        if (name === null) return;
        const touched = join(path, name);
        if (counts(name)) noticed(touched);
        if (deep && isEntered(touched)) enter(touched);
      });
      watcher.on('error', () => leave(path));
      watchers.set(path, watcher);
      if (deep) for (const below of foldersIn(path)) enter(below);
    } catch {
      // A folder that is gone, or that may not be read, holds no code of ours.
    }
  };
  const leave = (path: string): void => {
    watchers.get(path)?.close();
    watchers.delete(path);
  };
  enter(folder);
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers.values()) watcher.close();
    watchers.clear();
  };
}

function isCode(name: string): boolean {
  return CODE.has(extname(name));
}

function isEntered(path: string): boolean {
  const name = basename(path);
  if (name.startsWith('.') || SKIPPED.has(name)) return false;
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function foldersIn(path: string): readonly string[] {
  return readdirSync(path)
    .map((name) => join(path, name))
    .filter((below) => isEntered(below));
}
