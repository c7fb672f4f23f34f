import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';

/** Editors write a file in several steps, and users save several files at once. */
const QUIET_MS = 200;
const CODE = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.json']);
const SKIPPED = new Set(['node_modules', 'dist']);

export interface CodeWatch {
  readonly folder: string;
  /** Whether a change to this file counts; default: code and JSON. */
  readonly counts?: (name: string) => boolean;
  /** Also watch subfolders, except `node_modules`, `dist`, and names that begin with a dot. */
  readonly deep: boolean;
  /** The path of a subfolder to exclude: PERDURE_HOME, to which every worker writes. */
  readonly except?: string;
}

/**
 * Calls `changed` with the path of the last change once changes have stopped for a moment. Uses one
 * watch per folder, because Node's recursive watch includes `node_modules`. Returns a function that
 * ends the watch. It returns the path of the last change if `changed` has not been called for it
 * yet, else null.
 */
export function watchCode(
  { folder, counts = isCode, deep, except }: CodeWatch,
  changed: (file: string) => void,
): () => string | null {
  const watchers = new Map<string, FSWatcher>();
  let timer: NodeJS.Timeout | undefined;
  let pending: string | null = null;
  const left = except === undefined ? null : resolve(except);
  const isWatched = (path: string): boolean => resolve(path) !== left && isCodeFolder(path);

  const schedule = (path: string): void => {
    clearTimeout(timer);
    pending = path;
    timer = setTimeout(() => {
      pending = null;
      changed(path);
    }, QUIET_MS);
  };
  const addFolder = (path: string): void => {
    if (watchers.has(path)) return;
    try {
      const watcher = watch(path, (_, name) => {
        if (name === null) return;
        const touched = join(path, name);
        if (counts(name)) schedule(touched);
        if (deep && isWatched(touched)) addFolder(touched);
      });
      watcher.on('error', () => removeFolder(path));
      watchers.set(path, watcher);
      if (deep) for (const below of namesIn(path).filter(isWatched)) addFolder(below);
    } catch {
      // The folder was deleted or cannot be read.
    }
  };
  const removeFolder = (path: string): void => {
    watchers.get(path)?.close();
    watchers.delete(path);
  };
  addFolder(folder);
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers.values()) watcher.close();
    watchers.clear();
    return pending;
  };
}

function isCode(name: string): boolean {
  return CODE.has(extname(name));
}

function isCodeFolder(path: string): boolean {
  const name = basename(path);
  if (name.startsWith('.') || SKIPPED.has(name)) return false;
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function namesIn(path: string): readonly string[] {
  return readdirSync(path).map((name) => join(path, name));
}
