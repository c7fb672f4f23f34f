import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';

/**
 * Returns the lines of a file that name `Date` other than in `Date.now()`, without its comments. Most of
 * what a date can do depends on the time zone of the machine: `new Date(2026, 0, 1)`, `setHours`, and
 * also `toString` and template strings, which no lint rule can tell from those of other values. So the
 * workflow has no dates, only Unix times in ms.
 */
export function datesIn(file: string): readonly string[] {
  const source = readFileSync(file, 'utf8');
  const { comments } = parseSync(file, source);
  const code = comments.reduce(
    (text, { start, end }) => text.slice(0, start) + ' '.repeat(end - start) + text.slice(end),
    source,
  );
  return code
    .replaceAll(/\bDate\.now\(\)/g, '')
    .split('\n')
    .filter((line) => /\bDate\b/.test(line))
    .map((line) => line.trim());
}
