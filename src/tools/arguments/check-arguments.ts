import type { z } from 'zod';
import { canonicalJson } from '../../core/json.js';
import type { CallProblem } from '../../core/transcript/messages.js';
import { describeIssues } from '../../validation/describe-issues.js';
import { guarded } from '../guard.js';
import { toPlain } from '../result/plain.js';
import type { Tool } from '../tool.js';
import { headBytes } from '../utf8.js';

const MAX_MESSAGE_BYTES = 4_000;

/** The keys that lead to a value. */
type Place = readonly (string | number)[];

/** The parsed arguments, or the problem that the model reads. */
export type CheckedArguments =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: CallProblem };

/**
 * Checks arguments against the tool's `input` and returns the value for `executeParsed`.
 *
 * Never rejects, and waits at most `limitMs` (5 s by default): a refinement that throws or hangs is
 * reported as a problem. Issues at the places `unknownAt` are ignored; the value is then returned
 * unparsed.
 */
export async function checkArguments(
  tool: Pick<Tool, 'name' | 'input'>,
  value: unknown,
  options: { readonly limitMs?: number; readonly unknownAt?: readonly Place[] } = {},
): Promise<CheckedArguments> {
  const result = await guarded(
    `input schema of tool "${tool.name}"`,
    () => tool.input.safeParseAsync(value),
    options.limitMs,
  );
  if (!result.ok)
    return invalid(`The arguments of ${tool.name} could not be checked: ${result.message}`);
  if (result.value.success) return { ok: true, value: result.value.data };
  const { unknownAt = [] } = options;
  const issues = result.value.error.issues.filter((issue) => !isAbout(issue, unknownAt));
  if (issues.length === 0) return { ok: true, value };
  const lines = describeIssues(issues, value, {
    keys: {
      known: Object.keys(tool.input.shape),
      unrecognized: (keys, nearest) =>
        nearest === ''
          ? `unknown argument ${keys}; ${tool.name} has none`
          : `unknown argument ${keys}; expected one of ${nearest}`,
    },
  });
  return invalid([`The arguments of ${tool.name} are not valid:`, ...lines].join('\n'));
}

/**
 * Returns checked arguments as canonical JSON: what rules, people, and grants are asked about, and
 * what an execution is compared with.
 */
export function parsedJson(value: unknown): string {
  return canonicalJson(toPlain(value));
}

/** Whether an issue may be due to a value that is not known yet. */
function isAbout({ path, code }: z.core.$ZodIssue, unknownAt: readonly Place[]): boolean {
  return unknownAt.some((at) => begins(path, at) || (code === 'invalid_union' && begins(at, path)));
}

function begins(long: readonly PropertyKey[], short: readonly PropertyKey[]): boolean {
  return short.every((key, index) => key === long[index]);
}

function invalid(message: string): CheckedArguments {
  const text = headBytes(message, MAX_MESSAGE_BYTES);
  return { ok: false, problem: { type: 'invalid_arguments', message: text } };
}
