import type { ToolDefinition } from '../core/definition/tool-definition.js';

const MAX_CHARACTERS = 2_500;
const MAX_LINES = 400;

/**
 * Describes for people how a tool differs from its pinned version: `-` marks removed lines, `+`
 * added ones. A text beyond `maxCharacters` is cut, with a note.
 */
export function describeToolChange(
  pinned: ToolDefinition,
  now: ToolDefinition,
  maxCharacters = MAX_CHARACTERS,
): string {
  const parts = [
    part('description', pinned.description, now.description),
    part('arguments', pretty(pinned.parameters), pretty(now.parameters)),
    part('effect', pinned.effect, now.effect),
  ].filter((text) => text !== '');
  const text =
    parts.length === 0
      ? 'only in parts that models do not see (hints, the schema of its results, hidden characters)'
      : parts.join('\n');
  if (text.length <= maxCharacters) return text;
  return `${text.slice(0, maxCharacters)}\n… ${text.length - maxCharacters} more characters`;
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 1);
}

function part(name: string, before: string, after: string): string {
  if (before === after) return '';
  return [`${name}:`, ...changedLines(before.split('\n'), after.split('\n'))].join('\n');
}

/** Returns the removed and added lines in order, by the longest common subsequence. */
function changedLines(before: readonly string[], after: readonly string[]): readonly string[] {
  if (before.length > MAX_LINES || after.length > MAX_LINES) {
    return [`- ${before.length} lines`, `+ ${after.length} other lines`];
  }
  const common = commonLengths(before, after);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const keep = i < before.length && j < after.length && before[i] === after[j];
    if (keep) {
      i += 1;
      j += 1;
    } else if (
      j >= after.length ||
      (i < before.length && at(common, i + 1, j) >= at(common, i, j + 1))
    ) {
      lines.push(`- ${before[i] ?? ''}`);
      i += 1;
    } else {
      lines.push(`+ ${after[j] ?? ''}`);
      j += 1;
    }
  }
  return lines;
}

/**
 * Returns, for each pair of positions, the length of the longest common subsequence of both rests.
 */
function commonLengths(before: readonly string[], after: readonly string[]): number[][] {
  const table = before.map(() => after.map(() => 0));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    const row = table[i] ?? [];
    for (let j = after.length - 1; j >= 0; j -= 1) {
      row[j] =
        before[i] === after[j]
          ? 1 + at(table, i + 1, j + 1)
          : Math.max(at(table, i + 1, j), at(table, i, j + 1));
    }
  }
  return table;
}

function at(table: readonly (readonly number[])[], i: number, j: number): number {
  return table[i]?.[j] ?? 0;
}
