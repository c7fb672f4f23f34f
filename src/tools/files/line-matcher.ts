import { Script, createContext } from 'node:vm';
import { isObject } from '../../core/json.js';
import { ToolError } from '../tool-error.js';

/** The total time in milliseconds that one search may spend on matching. */
const BUDGET_MS = 2_000;
/** The maximum time in milliseconds that matching blocks the event loop at once. */
const RUN_MS = 500;
const LINES_PER_RUN = 2_000;
const MAX_LINE = 10_000;

/** A line that matches. */
export interface LineMatch {
  /** The index of the line, from 0. */
  readonly line: number;
  /** The offset of the match in the line, in UTF-16 units. */
  readonly column: number;
}

/** Finds the lines that match. */
export type LineMatcher = (lines: readonly string[]) => LineMatch[];

/** Makes a matcher for a literal text. */
export function literalMatcher(
  query: string,
  options: { readonly ignoreCase: boolean },
): LineMatcher {
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
