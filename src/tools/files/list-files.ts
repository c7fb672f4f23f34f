import type { Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { formatCount } from '../../core/text/text.js';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../errors.js';
import type { Tool } from '../tool.js';
import {
  type ConfinedPath,
  type OpenFolders,
  fileError,
  quote,
  resolveExisting,
  withFolders,
} from './confine.js';
import { globMatcher, isTemporary } from './names.js';
import type { FileToolSettings } from './open-file.js';

const MAX_ENTRIES = 100_000;
/** The maximum number of sizes looked up at once. */
const MAX_PARALLEL = 64;

/** A file or folder that a walk has found. */
interface WalkEntry {
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
interface WalkOptions {
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
async function sizesOf(
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

const MAX_SHOWN = 500;
const ALL_LEVELS = 64;

interface Sized {
  readonly entry: WalkEntry;
  readonly bytes: number | undefined;
}

/** Makes the tool that lists a folder, with exact counts even if not all names are shown. */
export function listFilesTool(settings: FileToolSettings): Tool {
  return defineTool({
    name: 'list_files',
    description:
      'Lists a folder: a line with counts, then one name per line (folders end with "/", files ' +
      'with their size). With `pattern` it finds files in all folders below.',
    effect: 'read',
    inline: true,
    input: z.object({
      path: z.string().default('.').describe('folder, from the root folder; "." is the root'),
      depth: z
        .int()
        .min(1)
        .max(ALL_LEVELS)
        .optional()
        .describe('levels of folders to show: 1 by default, all 64 with a pattern'),
      pattern: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('only files like this: "*.ts", "src/**/*.{ts,tsx}"'),
      sort: z.enum(['name', 'size']).default('name').describe('"size": largest files first'),
    }),
    describe: ({ path: file, pattern, depth = 1 }) =>
      `list_files ${file}${pattern ? ` ${pattern}` : ''}${depth > 1 ? ' and below' : ''}`,
    execute: async ({ path: file, depth, pattern, sort }, { signal }) => {
      const place = await resolveExisting(settings.root, file || '.');
      if (!(await isFolder(place))) {
        throw new ToolError(`${quote(file)} is not a folder; use read_file`);
      }
      const levels = depth ?? (pattern === undefined ? 1 : ALL_LEVELS);
      const walked = await walk(place, { levels, skip: settings.skip, signal });
      const found = matching(walked.entries, pattern);
      const sized = await withSizes(place.root, found, sort);
      const scope = `${pattern === undefined ? '' : ` match ${pattern}`} (${levelsText(levels)})`;
      const head = `${place.relative}: ${countKinds(found, pattern)}${scope}`;
      const lines = sized.slice(0, MAX_SHOWN).map(line);
      return [head, ...lines, ...notes(walked, found.length)].join('\n');
    },
  });
}

function matching(
  entries: readonly WalkEntry[],
  pattern: string | undefined,
): readonly WalkEntry[] {
  if (pattern === undefined) return entries;
  const matches = matcherOf(pattern);
  return entries.filter(({ relative, kind }) => kind !== 'folder' && matches(relative));
}

/** Compiles a pattern. Throws a `ToolError` for the model if it is invalid. */
export function matcherOf(pattern: string): (path: string) => boolean {
  try {
    return globMatcher(pattern);
  } catch (error) {
    throw new ToolError(
      `${quote(pattern)}: ${error instanceof Error ? error.message : 'invalid pattern'}`,
    );
  }
}

/** Sorts the entries and adds sizes; when sorted by name, only the shown entries need sizes. */
async function withSizes(
  root: string,
  entries: readonly WalkEntry[],
  sort: 'name' | 'size',
): Promise<Sized[]> {
  const selected =
    sort === 'size' ? entries.filter(({ kind }) => kind === 'file') : entries.slice(0, MAX_SHOWN);
  const sizes = await sizesOf(root, selected);
  const sized = selected.map((entry, index) => ({ entry, bytes: sizes[index] }));
  return sort === 'name' ? sized : sized.toSorted((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0));
}

function countKinds(entries: readonly WalkEntry[], pattern: string | undefined): string {
  const amount = (kind: WalkEntry['kind']): number =>
    entries.filter((entry) => entry.kind === kind).length;
  const parts = [formatCount(amount('file'), 'file')];
  if (pattern === undefined) parts.unshift(formatCount(amount('folder'), 'folder'));
  if (amount('link') > 0) parts.push(formatCount(amount('link'), 'symbolic link'));
  if (amount('other') > 0) parts.push(`${amount('other')} other`);
  return parts.join(', ');
}

function levelsText(levels: number): string {
  return levels >= ALL_LEVELS ? 'all levels' : formatCount(levels, 'level');
}

function line({ entry, bytes }: Sized): string {
  const name = entry.relative.replace(/\p{Control}/gu, (character) =>
    JSON.stringify(character).slice(1, -1),
  );
  switch (entry.kind) {
    case 'folder':
      return `${name}/`;
    case 'file':
      return bytes === undefined ? name : `${name} (${formatCount(bytes, 'byte')})`;
    case 'link':
      return `${name} (symbolic link)`;
    case 'other':
      return `${name} (not an ordinary file)`;
  }
}

function notes(walked: Walked, found: number): string[] {
  const omitted = found - MAX_SHOWN;
  return [
    ...(omitted > 0
      ? [`[${omitted} more not shown; narrow with path or pattern, or use sort "size"]`]
      : []),
    ...(walked.isCut
      ? ['[stopped after 100000 entries: the counts are too low; narrow with path]']
      : []),
    ...(walked.skipped.length > 0
      ? [`[not entered: ${walked.skipped.slice(0, 10).join(', ')}; name one as path to list it]`]
      : []),
    ...(walked.unreadable.length > 0
      ? [`[not readable: ${walked.unreadable.slice(0, 10).join(', ')}]`]
      : []),
  ];
}
