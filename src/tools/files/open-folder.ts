import { existsSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { constants, lstat, mkdir, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';

/** The deepest level that is entered; every level needs an open folder. */
export const MAX_DEPTH = 128;

/** Under this path, Linux resolves names from an open folder, wherever its own path leads now. */
const DESCRIPTORS = '/proc/self/fd';
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const FOLDER = constants.O_DIRECTORY ?? 0;

/** Identifies a file on this machine. */
export type FileNumber = Pick<BigIntStats, 'dev' | 'ino'>;

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
