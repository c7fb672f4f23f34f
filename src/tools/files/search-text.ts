import { z } from 'zod';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../tool-error.js';
import type { Tool } from '../tool.js';
import { resolveExisting } from './confine.js';
import type { ConfinedPath } from './confine.js';
import { literalMatcher, regexMatcher } from './line-matcher.js';
import type { LineMatcher } from './line-matcher.js';
import { matcherOf } from './list-files.js';
import { withFileIn } from './open-file.js';
import { withFolders, type OpenFolders } from './open-folder.js';
import type { FileToolSettings } from './options.js';
import { formatCount } from '../../core/text/count.js';
import { isBinary, readableSize } from './text.js';
import { isFolder, walk } from './walk.js';
import type { Walked } from './walk.js';

const MAX_SHOWN = 100;
const EXCERPT = 200;

interface Search {
  readonly shown: string[];
  readonly secret: readonly string[];
  matches: number;
  filesWithMatches: number;
  filesSearched: number;
  binary: number;
  readonly tooLarge: string[];
  failed: number;
}

/** Makes the tool that finds text in files, line by line. */
export function searchTextTool(settings: FileToolSettings): Tool {
  return defineTool({
    name: 'search_text',
    description:
      'Finds the lines that contain a text, in all files below a folder or in one file. The first ' +
      'line of the result has the counts, then one match per line as file:line: text.',
    effect: 'read',
    input: z.object({
      query: z
        .string()
        .min(1)
        .max(1_000)
        .describe('the text, taken literally unless regex is true'),
      path: z.string().default('.').describe('folder or file, from the root folder'),
      pattern: z.string().min(1).max(200).optional().describe('only files like this: "*.ts"'),
      regex: z.boolean().default(false).describe('query is a JavaScript regular expression'),
      ignore_case: z.boolean().default(false),
    }),
    describe: ({ query, path }) => `search_text ${JSON.stringify(query)} in ${path}`,
    execute: async ({ query, path, pattern, regex, ignore_case: ignoreCase }, { signal }) => {
      if (query.includes('\n')) {
        throw new ToolError(
          'the query has a line break, but the search goes line by line; search for one line of it',
        );
      }
      const matcher = (regex ? regexMatcher : literalMatcher)(query, { ignoreCase });
      const place = await resolveExisting(settings.root, path || '.');
      const { files, walked, secret } = await filesBelow(place, { settings, pattern, signal });
      const search = emptySearch(secret);
      const isNamed = walked === undefined;
      await withFolders(place.root, async (folders) => {
        for (const file of files) {
          signal.throwIfAborted();
          await searchFile(file, { folders, matcher, search, settings, isNamed });
        }
      });
      return render(search, walked);
    },
  });
}

/** A file to search, with the path that errors name. */
type Searched = Pick<ConfinedPath, 'requested' | 'relative'>;

interface Below {
  readonly files: readonly Searched[];
  /** Absent if the place is one file. */
  readonly walked?: Walked;
  /** Paths that are not searched because their names suggest secrets. */
  readonly secret: readonly string[];
}

async function filesBelow(
  place: ConfinedPath,
  options: {
    readonly settings: FileToolSettings;
    readonly pattern: string | undefined;
    readonly signal: AbortSignal;
  },
): Promise<Below> {
  const { settings, pattern, signal } = options;
  if (!(await isFolder(place))) {
    settings.guard.refuseReading(place);
    return { files: [place], secret: [] };
  }
  const walked = await walk(place, {
    levels: Number.POSITIVE_INFINITY,
    skip: settings.skip,
    signal,
  });
  const matches = pattern === undefined ? () => true : matcherOf(pattern);
  const matching = walked.entries
    .filter(({ kind, relative }) => kind === 'file' && matches(relative))
    .map(({ relative }) => relative);
  const mayRead = (relative: string): boolean => settings.guard.mayRead(relative);
  const files = matching.filter(mayRead).map((relative) => ({ requested: relative, relative }));
  return { files, walked, secret: matching.filter((relative) => !mayRead(relative)) };
}

function emptySearch(secret: readonly string[]): Search {
  return {
    shown: [],
    secret,
    matches: 0,
    filesWithMatches: 0,
    filesSearched: 0,
    binary: 0,
    tooLarge: [],
    failed: 0,
  };
}

async function searchFile(
  file: Searched,
  {
    matcher,
    search,
    ...options
  }: {
    readonly folders: OpenFolders;
    readonly matcher: LineMatcher;
    readonly search: Search;
    readonly settings: FileToolSettings;
    readonly isNamed: boolean;
  },
): Promise<void> {
  const text = await textOf(file, search, options);
  if (text === undefined) return;
  search.filesSearched += 1;
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const found = matcher(lines);
  if (found.length > 0) search.filesWithMatches += 1;
  search.matches += found.length;
  for (const { line, column } of found.slice(0, MAX_SHOWN - search.shown.length)) {
    search.shown.push(`${file.relative}:${line + 1}: ${excerpt(lines[line] ?? '', column)}`);
  }
}

/**
 * Returns a file's text, or undefined if it is not searched. Throws if the call named this file.
 */
async function textOf(
  file: Searched,
  search: Search,
  {
    folders,
    settings,
    isNamed,
  }: {
    readonly folders: OpenFolders;
    readonly settings: FileToolSettings;
    readonly isNamed: boolean;
  },
): Promise<string | undefined> {
  try {
    return await withFileIn(folders, file, async (handle, sizeBytes) => {
      if (sizeBytes > settings.maxFileBytes) {
        search.tooLarge.push(`${file.relative} (${readableSize(sizeBytes)})`);
        return undefined;
      }
      const bytes = await handle.readFile();
      if (!isBinary(bytes)) return bytes.toString();
      search.binary += 1;
      return undefined;
    });
  } catch (error) {
    if (isNamed) throw error;
    search.failed += 1;
    return undefined;
  }
}

function excerpt(line: string, column: number): string {
  if (line.length <= EXCERPT) return line.trim();
  const from = Math.max(0, Math.min(column - 40, line.length - EXCERPT));
  const part = line.slice(from, from + EXCERPT).replace(/\p{Surrogate}/gu, '');
  return `${from > 0 ? '…' : ''}${part.trim()}${from + EXCERPT < line.length ? '…' : ''}`;
}

function render(search: Search, walked: Walked | undefined): string {
  const files = formatCount(search.filesWithMatches, 'file');
  const searched = `${formatCount(search.filesSearched, 'file')} searched`;
  const head = `${formatCount(search.matches, 'match', 'matches')} in ${files} (${searched})`;
  const omitted = search.matches - search.shown.length;
  const notes = [
    omitted > 0 && `${omitted} more matches not shown; narrow with path or pattern`,
    search.binary > 0 && `${formatCount(search.binary, 'binary file')} not searched`,
    search.tooLarge.length > 0 && `too large to search: ${search.tooLarge.slice(0, 10).join(', ')}`,
    search.secret.length > 0 &&
      `not searched, because their names suggest secrets: ${search.secret.slice(0, 10).join(', ')}` +
        (search.secret.length > 10 ? `, and ${search.secret.length - 10} more` : ''),
    search.failed > 0 && `${formatCount(search.failed, 'file')} could not be read`,
    walked && walked.skipped.length > 0 && `not entered: ${walked.skipped.slice(0, 10).join(', ')}`,
    walked?.isCut && 'stopped after 100000 entries; narrow with path',
  ].filter((note) => typeof note === 'string');
  return [head, ...search.shown, ...notes.map((note) => `[${note}]`)].join('\n');
}
