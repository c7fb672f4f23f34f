import { Script, createContext } from 'node:vm';
import { isObject } from '../../core/json.js';
import { ToolError } from '../tool-error.js';

/** Milliseconds that all matching of one search may take, and that the event loop stands still at once. */
const BUDGET_MS = 2_000;
const RUN_MS = 500;
const LINES_PER_RUN = 2_000;
const MAX_LINE = 10_000;

export interface LineMatch {
  /** From 0. */
  readonly line: number;
  /** Where in the line, in UTF-16 units. */
  readonly column: number;
}

export type LineMatcher = (lines: readonly string[]) => LineMatch[];

export function literalMatcher(
  query: string,
  options: { readonly ignoreCase: boolean },
): LineMatcher {
  const fold = (text: string): string => (options.ignoreCase ? text.toLowerCase() : text);
  const wanted = fold(query);
  return (lines) =>
    lines.flatMap((text, line) => {
      const column = fold(text).indexOf(wanted);
      return column === -1 ? [] : [{ line, column }];
    });
}

/**
 * A matcher for a regular expression that a model wrote. Expressions such as `(a+)+$` can take longer
 * than the age of the universe and cannot be stopped from the same thread's code, so they run under the
 * engine's own time limit: 0.5 s for 2,000 lines, 2 s for one search. Lines are matched up to their 10,000th character.
 *
 * Throws a `ToolError` when it is no expression, and the matcher does when the time is over.
 */
export function regexMatcher(
  query: string,
  options: { readonly ignoreCase: boolean },
): LineMatcher {
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
    throw new ToolError(`${reason}; leave out \`regex\` to search for the text as it is`);
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
    // No `instanceof`: the error is of the script's own realm.
    if (!isObject(error) || error['code'] !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new ToolError(
      `the regular expression ${JSON.stringify(query)} takes too long; ` +
        'avoid repetition inside repetition, such as (a+)+, or narrow with path or pattern',
    );
  }
}
