import type { z } from 'zod';
import type { Json } from '../core/json.js';
import { describeIssues } from '../validation/describe-issues.js';
import { normalizeError } from '../tools/result/normalize-error.js';
import { toPlain } from '../tools/result/plain.js';
import { parsePlaceholders } from '../core/text/placeholders.js';
import { describeUnknown, type Template } from './template.js';

/**
 * Fills in a template. Each value is inserted once, whatever braces it contains: text verbatim,
 * other values as JSON, an absent optional argument as empty text.
 *
 * Throws an `Error` that names every argument that is missing, undeclared, or invalid.
 */
export function renderTemplate<Args extends z.ZodObject>(
  template: Template<Args>,
  values: z.input<Args>,
): string {
  const given: Readonly<Record<string, unknown>> = values;
  const checked = checkValues(template, given);
  return parsePlaceholders(template.text)
    .map((part) => (part.type === 'text' ? part.text : toText(getOwn(checked, part.name))))
    .join('');
}

function checkValues(template: Template, values: Readonly<Record<string, unknown>>): object {
  const known = Object.keys(template.args.shape);
  const unknown = Object.keys(values).filter((name) => !known.includes(name));
  const faults = unknown.length === 0 ? [] : [`- ${describeUnknown('argument', unknown, known)}`];
  const result = parse(template, values);
  if (result.success && faults.length === 0) return result.data;
  const issues = result.error?.issues ?? [];
  const isMissing = ({ path: [name, ...deeper] }: z.core.$ZodIssue): boolean =>
    name !== undefined && deeper.length === 0 && getOwn(values, String(name)) === undefined;
  for (const issue of issues)
    if (isMissing(issue)) faults.push(`- ${String(issue.path[0])} is missing`);
  const invalid = issues.filter((issue) => !isMissing(issue) && issue.code !== 'unrecognized_keys');
  const lines = describeIssues(invalid, toPlain(values), {
    keys: { known, unrecognized: (keys) => `unknown argument ${keys}` },
  });
  const all = `its arguments are ${known.join(', ') || 'none'}`;
  throw new Error([`The template cannot be rendered; ${all}:`, ...faults, ...lines].join('\n'));
}

function parse(
  { args }: Template,
  values: unknown,
): z.ZodSafeParseResult<Readonly<Record<string, unknown>>> {
  try {
    return args.safeParse(values);
  } catch (error) {
    const { message } = normalizeError(error);
    throw new Error(`The arguments of the template could not be checked: ${message}`, {
      cause: error,
    });
  }
}

function getOwn(values: object, name: string): unknown {
  return Object.hasOwn(values, name) ? (Reflect.get(values, name) as unknown) : undefined;
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined) return '';
  const plain: Json = toPlain(value);
  return typeof plain === 'string' ? plain : JSON.stringify(plain);
}
