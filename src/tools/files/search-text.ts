import { Script, createContext } from 'node:vm';
import { z } from 'zod';
import { isObject } from '../../core/text/json.js';
import { formatCount } from '../../core/text/text.js';
import { defineTool } from '../define-tool.js';
import { ToolError } from '../errors.js';
import type { Tool } from '../tool.js';
import { type ConfinedPath, type OpenFolders, resolveExisting, withFolders } from './confine.js';
import { type Walked, isFolder, matcherOf, walk } from './list-files.js';
import { type FileToolSettings, isBinary, readableSize, withFileIn } from './open-file.js';

/** The total time in milliseconds that one search may spend on matching. */
const BUDGET_MS = 2_000;
/** The maximum time in milliseconds that matching blocks the event loop at once. */
const RUN_MS = 500;
const LINES_PER_RUN = 2_000;
const MAX_LINE = 10_000;

/** A line that matches. */
interface LineMatch {
  /** The index of the line, from 0. */
  readonly line: number;
  /** The offset of the match in the line, in UTF-16 units. */
  readonly column: number;
}

/** Finds the lines that match. */
type LineMatcher = (lines: readonly string[]) => LineMatch[];

/** Makes a matcher for a literal text. */
function literalMatcher(query: string, options: { readonly ignoreCase: boolean }): LineMatcher {
  const fold = (text: string): string => (options.ignoreCase ? text.toLowerCase() : text);
  const folded = fold(query);
  return (lines) =>
    lines.flatMap((text, line) => {
      const column = fold(text).indexOf(folded);
      return column === -1 ? [] : [{ line, column }];
    });
}

/**
 * Makes a matcher for a regular expression that a model wrote. Expressions such as `(a+)+$` take
 * exponential time and cannot be stopped by code on the same thread, so V8 runs them with a time
 * limit: 0.5 s for 2,000 lines, 2 s for one search. Lines are matched up to their 10,000th
 * character.
 *
 * Throws a `ToolError` if the expression is invalid; the matcher throws one when the time is up.
 */
function regexMatcher(query: string, options: { readonly ignoreCase: boolean }): LineMatcher {
  const pattern = compiled(query, options.ignoreCase ? 'i' : '');
  const context = createContext({ pattern, lines: [] as readonly string[] });
  const script = new Script('lines.map((text) => text.search(pattern))');
  let leftMs = BUDGET_MS;
  return (lines) => {
    const matches: LineMatch[] = [];
    for (let from = 0; from < lines.length; from += LINES_PER_RUN) {
      context['lines'] = lines
        .slice(from, from + LINES_PER_RUN)
        .map((text) => text.slice(0, MAX_LINE));
      const started = performance.now();
      const columns = runLimited(script, context, { query, limitMs: Math.min(leftMs, RUN_MS) });
      leftMs -= performance.now() - started;
      columns.forEach((column, index) => {
        if (column >= 0) matches.push({ line: from + index, column });
      });
    }
    return matches;
  };
}

function compiled(query: string, flags: string): RegExp {
  try {
    return new RegExp(query, flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ToolError(`${reason}; omit \`regex\` to search for the text as it is`);
  }
}

function runLimited(
  script: Script,
  context: ReturnType<typeof createContext>,
  { query, limitMs }: { readonly query: string; readonly limitMs: number },
): readonly number[] {
  try {
    const columns: unknown = script.runInContext(context, {
      timeout: Math.max(1, Math.ceil(limitMs)),
    });
    return Array.isArray(columns) ? columns.map(Number) : [];
  } catch (error) {
    // `instanceof` does not work, because the error is from the script's own realm.
    if (!isObject(error) || error['code'] !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new ToolError(
      `the regular expression ${JSON.stringify(query)} takes too long; ` +
        'avoid repetition inside repetition, such as (a+)+, or narrow with path or pattern',
    );
  }
}

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
    inline: true,
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
