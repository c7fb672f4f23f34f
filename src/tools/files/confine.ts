import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { nearestFirst } from '../../validation/nearest.js';
import { ToolError } from '../tool-error.js';
import { fileError, quote } from './fs-error.js';
import { withFolders } from './open-folder.js';

/** A place inside the root. */
export interface Place {
  /** The path as the model wrote it: the only one for messages. */
  readonly asked: string;
  /** Without symbolic links, inside the root. */
  readonly real: string;
  /** From the root, with `/`; `.` for the root itself. */
  readonly relative: string;
  /** The same before links were followed: how the model named it. */
  readonly lexical: string;
  /** The root without symbolic links. */
  readonly root: string;
}

interface Located {
  readonly root: string;
  readonly lexical: string;
  /** Where the part that exists really lies. */
  readonly real: string;
  /** The names below `real` that do not exist. */
  readonly missing: readonly string[];
}

/**
 * The existing place that `asked` names, after all symbolic links.
 *
 * Throws a `ToolError` unless it lies inside the root. Whether something outside exists is not told.
 */
export async function resolveExisting(root: string, asked: string): Promise<Place> {
  const located = await locate(root, asked);
  if (located.missing.length === 0) return placeAt(asked, located);
  const name = located.missing[0] ?? '';
  const siblings = await namesIn(located).catch(() => []);
  const names = nearestFirst(name, siblings).slice(0, 10).map(quote);
  const folder = relativeTo(located.root, located.real);
  const holds = names.length === 0 ? 'nothing' : names.join(', ');
  throw new ToolError(
    `${quote(asked)} does not exist; in ${quote(folder)} there is ${holds}${siblings.length > 10 ? ', …' : ''}`,
  );
}

/**
 * The place where `asked` is to be written; it and its folders need not exist.
 *
 * Throws a `ToolError` unless its nearest existing folder lies inside the root, and when the name
 * itself is a symbolic link, wherever that leads.
 */
export async function resolveTarget(root: string, asked: string): Promise<Place> {
  const folder = await locate(root, path.posix.dirname(asked) || '.', asked);
  const real = path.join(folder.real, ...folder.missing, path.basename(asked));
  if (!isInside(folder.root, real) || real === folder.root) throw outside(asked);
  const stats = await lstat(real).catch(() => undefined);
  if (stats?.isSymbolicLink()) {
    throw new ToolError(`${quote(asked)} is a symbolic link; write to the file it names instead`);
  }
  const lexical = path.posix.join(folder.lexical, path.basename(asked));
  return { asked, real, relative: relativeTo(folder.root, real), lexical, root: folder.root };
}

/** What lies in the folder that was found, unless something else has taken its place. */
async function namesIn({ root, real }: Located): Promise<readonly string[]> {
  return await withFolders(root, async (folders) => {
    const folder = await folders.open(relativeTo(root, real));
    const names = await readdir(folder.at());
    await folder.verify();
    return names;
  });
}

async function locate(root: string, wanted: string, asked = wanted): Promise<Located> {
  refuseOddCharacters(asked);
  const realRoot = await realpath(root).catch((error: unknown) => {
    throw new Error(
      `the root folder ${root} of the file tools cannot be used; create it or name another`,
      {
        cause: error,
      },
    );
  });
  const absolute = path.resolve(realRoot, fromConfiguredRoot(root, wanted));
  if (!isInside(realRoot, absolute)) throw outside(asked);
  const { real, missing } = await nearestExisting(absolute, asked);
  if (!isInside(realRoot, real)) {
    throw new ToolError(
      `${quote(asked)} leads out of the folder that these tools may use, through a symbolic link`,
    );
  }
  return { root: realRoot, lexical: relativeTo(realRoot, absolute), real, missing };
}

async function nearestExisting(
  absolute: string,
  asked: string,
): Promise<{ readonly real: string; readonly missing: string[] }> {
  const missing: string[] = [];
  for (let current = absolute; ; current = path.dirname(current)) {
    try {
      return { real: await realpath(current), missing };
    } catch (error) {
      if (!isNotFound(error)) throw fileError(asked, error);
      const dangling = await lstat(current).catch(() => undefined);
      if (dangling) throw new ToolError(`${quote(asked)} goes through a symbolic link to nothing`);
      missing.unshift(path.basename(current));
    }
  }
}

/** An absolute path below the root as it was configured is as good as one below its real path. */
function fromConfiguredRoot(root: string, wanted: string): string {
  const fromRoot = path.isAbsolute(wanted) ? path.relative(root, wanted) : '..';
  return fromRoot === '..' || fromRoot.startsWith('../') || path.isAbsolute(fromRoot)
    ? wanted
    : fromRoot;
}

function refuseOddCharacters(asked: string): void {
  if (asked.includes('\0'))
    throw new ToolError(`${quote(asked)} holds a NUL character; no path does`);
  if (asked.includes('\\') && path.sep !== '\\') {
    const cure = quote(asked.replaceAll('\\', '/'));
    throw new ToolError(`${quote(asked)} has backslashes; separate folders with "/": ${cure}`);
  }
}

function outside(asked: string): ToolError {
  return new ToolError(
    `${quote(asked)} is outside the folder that these tools may use; give a path relative to it, such as "README.md"`,
  );
}

function placeAt(asked: string, { root, lexical, real }: Located): Place {
  return { asked, real, relative: relativeTo(root, real), lexical, root };
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
