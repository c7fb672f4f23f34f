import type { Json, JsonObject } from '../../core/json.js';
import { refsIn, withValueAt } from '../../core/plan/references.js';
import type { Tool } from '../tool.js';
import { checkArguments, type CheckedArguments } from './check-arguments.js';

/** Arguments with unresolved references, checked as far as possible. */
export type PlannedArguments = CheckedArguments & {
  /** For people: the arguments with a text such as `‹a1: data.id›` in place of each reference. */
  readonly described: unknown;
};

/**
 * Checks the arguments of a planned action against the tool's `input`. A reference may replace any
 * value; its place is checked once the value is known. Never rejects.
 */
export async function checkPlannedArguments(
  tool: Pick<Tool, 'name' | 'input'>,
  value: JsonObject,
): Promise<PlannedArguments> {
  const refs = refsIn(value);
  if (refs.length === 0) {
    const checked = await checkArguments(tool, value);
    return { ...checked, described: checked.ok ? checked.value : value };
  }
  const places = refs.map(({ at }) => at);
  const described = refs.reduce<Json>(
    (before, { ref, path, at }) =>
      withValueAt(before, at, `‹${path === '' ? ref : `${ref}: ${path}`}›`),
    value,
  );
  return { ...(await checkArguments(tool, value, { unknownAt: places })), described };
}
