import type { z } from 'zod';
import type { Json } from '../core/json.js';
import type { CallProblem } from '../core/messages.js';
import { guarded } from './guard.js';
import { nearestFirst } from './nearest.js';
import type { Tool } from './tool.js';
import { headBytes } from './utf8.js';

const MAX_ISSUES = 10;
const MAX_MESSAGE_BYTES = 4_000;

export type CheckedArguments =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: CallProblem };

/**
 * Checks parsed arguments against the tool's `input`; the value is what `execute` is to be given.
 *
 * Contract: never rejects, and takes at most `limitMs` (5 s by default) of waiting: a refinement that
 * throws or hangs is reported as a problem.
 */
export async function checkArguments(
  tool: Pick<Tool, 'name' | 'input'>,
  value: Json,
  options: { readonly limitMs?: number } = {},
): Promise<CheckedArguments> {
  const result = await guarded(() => tool.input.safeParseAsync(value), options.limitMs);
  if (!result.ok)
    return invalid(`The arguments of ${tool.name} could not be checked: ${result.message}`);
  if (result.value.success) return { ok: true, value: result.value.data };
  const lines = result.value.error.issues.map((issue) => `- ${describeIssue(issue, value, tool)}`);
  const shown = lines.slice(0, MAX_ISSUES);
  if (lines.length > MAX_ISSUES) shown.push(`- and ${lines.length - MAX_ISSUES} more`);
  return invalid([`The arguments of ${tool.name} are not valid:`, ...shown].join('\n'));
}

function invalid(message: string): CheckedArguments {
  const text = headBytes(message, MAX_MESSAGE_BYTES);
  return { ok: false, problem: { type: 'invalid_arguments', message: text } };
}

function describeIssue(
  issue: z.core.$ZodIssue,
  value: Json,
  tool: Pick<Tool, 'name' | 'input'>,
): string {
  const path = readablePath(issue.path);
  const came = valueAt(value, issue.path);
  if (issue.code === 'unrecognized_keys') return unrecognised(issue, tool);
  const label = path === '' ? '' : `${path}: `;
  if (came === undefined && issue.code !== 'custom')
    return `${label}missing, ${expectation(issue)}`;
  const shown = path === '' ? '' : `, got ${short(came)}`;
  return `${label}${expectation(issue)}${shown}`;
}

function unrecognised(
  issue: z.core.$ZodIssueUnrecognizedKeys,
  tool: Pick<Tool, 'name' | 'input'>,
): string {
  const keys = issue.keys.map((key) => short(key)).join(', ');
  if (issue.path.length > 0) return `${readablePath(issue.path)}: there is no ${keys} here`;
  const names = nearestFirst(issue.keys[0] ?? '', Object.keys(tool.input.shape));
  if (names.length === 0) return `there is no argument ${keys}; ${tool.name} takes none`;
  return `there is no argument ${keys}; the arguments are ${names.join(', ')}`;
}

function expectation(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return `expected ${issue.expected}`;
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) {
    const message = issue.message.replace(/^Invalid \w+: /, '');
    return headBytes(message, 300);
  }
  const alternatives = issue.errors.map((issues) =>
    issues
      .slice(0, 3)
      .map((inner) => `${readablePath(inner.path)} ${expectation(inner)}`.trim())
      .join(' and '),
  );
  return `fits none of the alternatives (${alternatives.slice(0, 5).join('; or ')})`;
}

/** `["items", 0, "name"]` → `items[0].name`. */
function readablePath(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.join('').replace(/^\./, '');
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((here, step) => {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined;
    return Reflect.get(here, step) as unknown;
  }, value);
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${headBytes(text, 60)}…` : text;
}
