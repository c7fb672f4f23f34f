import { type BigIntStats, existsSync } from 'node:fs';
import {
  type FileHandle,
  constants,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
} from 'node:fs/promises';
import path from 'node:path';
import { nearestFirst } from '../../validation/near-names.js';
import { ToolError } from '../errors.js';

/** Errors that the model can fix. All other errors, such as a full disk, are retried. */
const FIXES: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist; list the folder to see what does',
  ENOTDIR: 'is not a folder, or a part of its path is a file or a link',
  EEXIST: 'is not a folder, or a part of its path is a file or a link',
  EISDIR: 'is a folder; name a file in it',
  EACCES: 'may not be accessed: no permission',
  EPERM: 'may not be accessed: the operation is not permitted',
  ELOOP: 'is a symbolic link that may not be followed',
  ENAMETOOLONG: 'has a name that is too long',
  EROFS: 'lies on a read-only file system',
  ENXIO: 'is not an ordinary file',
  EREPLACED: 'was replaced while it was opened, or a folder above it was; try again',
  ETOODEEP: 'lies deeper than 128 folders, which these tools do not support',
};

/**
 * Converts a file system error for the model, with the path as the model wrote it, never the real
 * one. Returns a `ToolError` if other arguments can fix it, else an `Error`, which is retried.
 */
export function fileError(requested: string, error: unknown): Error {
  if (error instanceof ToolError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  const fix = FIXES[code];
  if (fix !== undefined) return new ToolError(`${quote(requested)} ${fix}`);
  if (code.startsWith('E')) {
    return new Error(`${quote(requested)} is currently not usable (${code})`, { cause: error });
  }
  return error instanceof Error ? error : new Error(`${quote(requested)}: ${String(error)}`);
}

/**
 * Returns a path for a message: in quotes, with escaped control characters, at most 300 characters.
 */
export function quote(requested: string): string {
  return JSON.stringify(requested.length > 300 ? `${requested.slice(0, 300)}…` : requested);
}

/** The deepest level that is entered; every level needs an open folder. */
const MAX_DEPTH = 128;

/** Under this path, Linux resolves names from an open folder, wherever its own path leads now. */
const DESCRIPTORS = '/proc/self/fd';
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const FOLDER = constants.O_DIRECTORY ?? 0;

/** Identifies a file on this machine. */
type FileNumber = Pick<BigIntStats, 'dev' | 'ino'>;

/** A folder below the root that stays the same folder even if a link replaces its path. */
export interface OpenFolder {
  /** Returns the path by which functions of `fs` find the folder, or a name in it. */
  at(name?: string): string;
  /**
   * Rejects unless the folder, and the opened file of that name in it, are still where they were
   * opened. Call it between opening something and using it. On systems where descriptors are paths,
   * links lead nowhere and nothing needs to be checked.
   */
  verify(name?: string, opened?: FileNumber): Promise<void>;
}

/**
 * Opens folders below one root without following links; keeps those on the way to the last one
 * open.
 */
export interface OpenFolders {
  /**
   * Opens the folder at a path from the root, with `/`; `create` makes missing folders. The result
   * is valid until the next call. Rejects with an error that has a `code` if a link or a file is in
   * the way.
   */
  open(relative: string, options?: { readonly create?: boolean }): Promise<OpenFolder>;
  close(): Promise<void>;
}

interface Level {
  readonly name: string;
  readonly at: string;
  /** Null if descriptors are not paths; `identity` then identifies the folder. */
  readonly handle: FileHandle | null;
  readonly real: string;
  readonly identity: string;
}

/** Runs `use` with the folders below `root`, a path without links, and closes them. */
export async function withFolders<Result>(
  root: string,
  use: (folders: OpenFolders) => Promise<Result>,
  descriptors: string | null = existsSync(DESCRIPTORS) ? DESCRIPTORS : null,
): Promise<Result> {
  const folders = openFolders(root, descriptors);
  try {
    return await use(folders);
  } finally {
    await folders.close();
  }
}

function openFolders(root: string, descriptors: string | null): OpenFolders {
  const levels: Level[] = [];

  const enter = async (name: string, at: string, real: string): Promise<void> => {
    levels.push(await levelAt({ name, at, real }, descriptors));
  };
  const leaveTo = async (length: number): Promise<void> => {
    const left = levels.splice(length);
    await Promise.all(left.map(async ({ handle }) => await handle?.close()));
  };
  return {
    async open(relative, { create = false } = {}) {
      const names = relative === '.' ? [] : relative.split('/');
      if (names.length > MAX_DEPTH) throw fault('ETOODEEP');
      if (levels.length === 0) await enter('', root, root);
      const shared = names.findIndex((name, index) => levels[index + 1]?.name !== name);
      if (shared !== -1) await leaveTo(shared + 1);
      else await leaveTo(names.length + 1);
      for (const name of names.slice(levels.length - 1)) {
        const parent = lastOf(levels);
        const at = path.join(parent.at, name);
        if (create) await mkdir(at).catch(ignoreExisting);
        await enter(name, at, path.join(parent.real, name));
      }
      const { at } = lastOf(levels);
      const way = levels.slice();
      return {
        at: (name) => (name === undefined ? at : path.join(at, name)),
        async verify(name, opened) {
          if (descriptors !== null) return;
          if (name !== undefined) {
            const now = await lstat(path.join(at, name), { bigint: true });
            if (now.dev !== opened?.dev || now.ino !== opened.ino) throw fault('EREPLACED');
          }
          await Promise.all(way.map(verifyLevel));
        },
      };
    },
    close: () => leaveTo(0),
  };
}

async function levelAt(
  { name, at, real }: Pick<Level, 'name' | 'at' | 'real'>,
  descriptors: string | null,
): Promise<Level> {
  if (descriptors === null) {
    return { name, at, real, handle: null, identity: await identityOf(real) };
  }
  const handle = await open(at, constants.O_RDONLY | FOLDER | NO_FOLLOW);
  return { name, at: `${descriptors}/${handle.fd}`, real, handle, identity: '' };
}

function lastOf(levels: readonly Level[]): Level {
  const last = levels.at(-1);
  if (last === undefined) throw new Error('no folder is open');
  return last;
}

async function verifyLevel({ real, identity }: Level): Promise<void> {
  if ((await identityOf(real)) === identity) return;
  throw fault('EREPLACED');
}

/** Returns what identifies a folder. Rejects if a link or a file is there. */
async function identityOf(real: string): Promise<string> {
  const stats = await lstat(real, { bigint: true });
  if (!stats.isDirectory()) throw fault('ENOTDIR');
  return `${stats.dev}:${stats.ino}`;
}

function fault(code: 'EREPLACED' | 'ETOODEEP' | 'ENOTDIR'): Error {
  return Object.assign(new Error(code), { code });
}

function ignoreExisting(error: unknown): void {
  if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return;
  throw error;
}

/** A place inside the root. */
export interface ConfinedPath {
  /** The path as the model wrote it, for messages. */
  readonly requested: string;
  /** The absolute path without symbolic links, inside the root. */
  readonly real: string;
  /** The path from the root, with `/`; `.` for the root itself. */
  readonly relative: string;
  /** The path from the root before links were followed. */
  readonly lexical: string;
  /** The root without symbolic links. */
  readonly root: string;
}

interface Located {
  readonly root: string;
  readonly lexical: string;
  /** The real path of the part that exists. */
  readonly real: string;
  /** The names below `real` that do not exist. */
  readonly missing: readonly string[];
}

/**
 * Returns the existing place that `requested` names, after all symbolic links.
 *
 * Throws a `ToolError` unless it lies inside the root. The error does not reveal what exists
 * outside.
 */
export async function resolveExisting(root: string, requested: string): Promise<ConfinedPath> {
  const located = await locate(root, requested);
  if (located.missing.length === 0) return placeAt(requested, located);
  const name = located.missing[0] ?? '';
  const siblings = await namesIn(located).catch(() => []);
  const names = nearestFirst(name, siblings).slice(0, 10).map(quote);
  const folder = relativeTo(located.root, located.real);
  const content = names.length === 0 ? 'nothing' : names.join(', ');
  throw new ToolError(
    `${quote(requested)} does not exist; ${quote(folder)} contains ${content}${siblings.length > 10 ? ', …' : ''}`,
  );
}

/**
 * Returns the place where `requested` is to be written; it and its folders need not exist.
 *
 * Throws a `ToolError` unless its nearest existing folder lies inside the root, and if the name
 * itself is a symbolic link, wherever it leads.
 */
export async function resolveTarget(root: string, requested: string): Promise<ConfinedPath> {
  const folder = await locate(root, path.posix.dirname(requested) || '.', requested);
  const real = path.join(folder.real, ...folder.missing, path.basename(requested));
  if (!isInside(folder.root, real) || real === folder.root) throw outside(requested);
  const stats = await lstat(real).catch(() => undefined);
  if (stats?.isSymbolicLink()) {
    throw new ToolError(
      `${quote(requested)} is a symbolic link; write to the file it names instead`,
    );
  }
  const lexical = path.posix.join(folder.lexical, path.basename(requested));
  return { requested, real, relative: relativeTo(folder.root, real), lexical, root: folder.root };
}

/**
 * Returns the names in the folder that was found. Rejects if something else has taken its place.
 */
async function namesIn({ root, real }: Located): Promise<readonly string[]> {
  return await withFolders(root, async (folders) => {
    const folder = await folders.open(relativeTo(root, real));
    const names = await readdir(folder.at());
    await folder.verify();
    return names;
  });
}

async function locate(root: string, target: string, requested = target): Promise<Located> {
  refuseOddCharacters(requested);
  const realRoot = await realpath(root).catch((error: unknown) => {
    throw new Error(
      `the root folder ${root} of the file tools cannot be used; create it, or name another one`,
      {
        cause: error,
      },
    );
  });
  const absolute = path.resolve(realRoot, fromConfiguredRoot(root, target));
  if (!isInside(realRoot, absolute)) throw outside(requested);
  const { real, missing } = await nearestExisting(absolute, requested);
  if (!isInside(realRoot, real)) {
    throw new ToolError(
      `${quote(requested)} leads out of the folder that these tools may use, through a symbolic link`,
    );
  }
  return { root: realRoot, lexical: relativeTo(realRoot, absolute), real, missing };
}

async function nearestExisting(
  absolute: string,
  requested: string,
): Promise<{ readonly real: string; readonly missing: string[] }> {
  const missing: string[] = [];
  for (let current = absolute; ; current = path.dirname(current)) {
    try {
      return { real: await realpath(current), missing };
    } catch (error) {
      if (!isNotFound(error)) throw fileError(requested, error);
      const dangling = await lstat(current).catch(() => undefined);
      if (dangling)
        throw new ToolError(`${quote(requested)} goes through a symbolic link to nothing`);
      missing.unshift(path.basename(current));
    }
  }
}

/** Makes an absolute path below the root as configured relative, since the root may be a link. */
function fromConfiguredRoot(root: string, target: string): string {
  const fromRoot = path.isAbsolute(target) ? path.relative(root, target) : '..';
  return fromRoot === '..' || fromRoot.startsWith('../') || path.isAbsolute(fromRoot)
    ? target
    : fromRoot;
}

function refuseOddCharacters(requested: string): void {
  if (requested.includes('\0'))
    throw new ToolError(`${quote(requested)} has a NUL character, which is not allowed in a path`);
  if (requested.includes('\\') && path.sep !== '\\') {
    const fix = quote(requested.replaceAll('\\', '/'));
    throw new ToolError(`${quote(requested)} has backslashes; separate folders with "/": ${fix}`);
  }
}

function outside(requested: string): ToolError {
  return new ToolError(
    `${quote(requested)} is outside the folder that these tools may use; give a path relative to it, such as "README.md"`,
  );
}

function placeAt(requested: string, { root, lexical, real }: Located): ConfinedPath {
  return { requested, real, relative: relativeTo(root, real), lexical, root };
}

function relativeTo(root: string, real: string): string {
  return path.relative(root, real).split(path.sep).join('/') || '.';
}

function isInside(root: string, candidate: string): boolean {
  const relative = path.relative(root, candidate);
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
