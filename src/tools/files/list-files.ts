import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';
import { resolveExisting } from './confine.js';
import { quote } from './fs-error.js';
import { globMatcher } from './glob.js';
import type { FileToolSettings } from './options.js';
import { formatCount } from '../../core/text/count.js';

import { isFolder, sizesOf, walk } from './walk.js';
import type { WalkEntry, Walked } from './walk.js';

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
    describe: ({ path, pattern, depth = 1 }) =>
      `list_files ${path}${pattern ? ` ${pattern}` : ''}${depth > 1 ? ' and below' : ''}`,
    execute: async ({ path, depth, pattern, sort }, { signal }) => {
      const place = await resolveExisting(settings.root, path || '.');
      if (!(await isFolder(place))) {
        throw new ToolError(`${quote(path)} is not a folder; use read_file`);
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
