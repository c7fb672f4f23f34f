import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { nearestFirst } from '../../validation/nearest.js';
import { ToolError } from '../tool-error.js';
import { fileError, quote } from './fs-error.js';
import { withFolders } from './open-folder.js';

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
