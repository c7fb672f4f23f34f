import { spawn } from 'node:child_process';
import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject } from '../../core/text/json.js';
import type { GlobalOptions } from '../context.js';
import { formatDuration } from '../format/format.js';
import { REPORTS_FILES } from '../input/load-config.js';
import { placeFlags } from '../reports/next-command.js';

/** A worker in its own process, so that changed code is loaded again. */
export interface WorkerChild {
  /** Resolves with the exit code when the process has ended; null if it was killed. */
  readonly ended: Promise<number | null>;
  /**
   * Resolves with the files that the configuration imports; null if the process ends before it has
   * them.
   */
  readonly files: Promise<readonly string[] | null>;
  /** Returns the port of its console, if that is another one than it was given. */
  otherPort(): number | null;
  /** Asks the worker to shut down. Resolves when the process has ended. */
  stop(): Promise<void>;
}

/** A worker allows its calls five seconds to end; after this time it is killed. */
const STOP_MS = 10_000;

/**
 * Starts `perdure worker` with the same options. It has its own process group, so Ctrl-C in the
 * terminal does not reach it. It ends by itself when this process ends.
 */
export function startWorkerChild(
  options: GlobalOptions,
  flags: readonly string[] = [],
  { anyPort = false }: { readonly anyPort?: boolean } = {},
): WorkerChild {
  const program = process.argv[1] ?? '';
  const args = [...process.execArgv, program, 'worker', ...placeFlags(options), ...flags];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
    env: { ...process.env, [REPORTS_FILES]: '1', ...(anyPort && { [ANY_PORT]: '1' }) },
  });
  const ended = new Promise<number | null>((settle) => {
    child.once('exit', (code) => settle(code));
    child.once('error', () => settle(null));
  });
  const files = new Promise<readonly string[] | null>((settle) => {
    child.on('message', (message) => {
      const found = filesIn(message);
      if (found !== null) settle(found);
    });
    void ended.then(() => settle(null));
  });
  let port: number | null = null;
  child.on('message', (message) => (port = portIn(message) ?? port));
  return {
    ended,
    files,
    otherPort: () => port,
    async stop() {
      child.kill('SIGTERM');
      const late = sleep(STOP_MS, 'late', { ref: false });
      if ((await Promise.race([ended, late])) === 'late') child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Set for a worker whose console may have another port, if the one that it is given is taken. */
const ANY_PORT = 'PERDURE_DEV_ANY_PORT';

/** Returns whether this process is a worker of `dev` whose console may have any port. */
export function takesAnyPort(): boolean {
  return process.send !== undefined && process.env[ANY_PORT] === '1';
}

/** Tells `dev` which port the console of this worker has, so that the next worker takes it, too. */
export function reportPort(port: number): void {
  process.send?.({ [ANY_PORT]: port });
}

function portIn(message: unknown): number | null {
  const port: unknown = isObject(message) ? message[ANY_PORT] : null;
  return typeof port === 'number' ? port : null;
}

function filesIn(message: unknown): readonly string[] | null {
  const files: unknown = isObject(message) ? message[REPORTS_FILES] : null;
  return Array.isArray(files) ? files.filter((path) => typeof path === 'string') : null;
}

/** Editors write a file in several steps, and users save several files at once. */
const QUIET_MS = 200;
const CODE = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.json']);
const SKIPPED = new Set(['node_modules', 'dist']);

interface CodeWatch {
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

const LOOK_MS = 1_000;
const BLOCKED_MS = 5_000;

/**
 * Reports when the event loop was blocked: while a tool computes without yielding, no heartbeat is
 * sent, and the server considers the worker dead. Returns a function that ends the watch.
 */
export function watchEventLoop(note: (line: string) => void): () => void {
  let seenAt = performance.now();
  const timer = setInterval(() => {
    const late = performance.now() - seenAt - LOOK_MS;
    seenAt = performance.now();
    if (late < BLOCKED_MS) return;
    note(
      `The worker's event loop was blocked for ${formatDuration(late)}: a tool computed without yielding. ` +
        'Calls without heartbeats are retried elsewhere; let the tool await periodically, or use a worker thread.',
    );
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
