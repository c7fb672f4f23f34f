import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { isObject } from '../core/json.js';
import { show } from '../core/text/format-value.js';
import { describeIssues } from './describe-issues.js';
import { likelyMeant } from './nearest.js';

/** A schema for each option; the compiler rejects missing schemas and schemas without an option. */
export type OptionSchemas<Options> = { readonly [Key in keyof Required<Options>]: z.ZodType };

/**
 * Throws unless the options of a public function fit their schema. Types also enforce this, but a
 * caller may be JavaScript.
 *
 * The message names `kind` and the options' `name`, and has a line `field: expected X, got Y; fix`
 * for each fault. Objects and lists are not shown, since they may hold secrets. `fail` creates the error;
 * default: an `InputError`.
 */
export function checkOptions(
  kind: string,
  { schema, options }: { readonly schema: z.ZodType; readonly options: unknown },
  fail: (message: string) => Error = (message) => new InputError(message),
): void {
  const { error } = schema.safeParse(options, { error: unknownOption });
  if (error === undefined) return;
  const name = isObject(options) && typeof options['name'] === 'string' ? options['name'] : null;
  const subject = name === null ? kind : `${kind} ${show(name)}`;
  const lines = describeIssues(error.issues, options, { hidesObjects: true });
  const [first = ''] = lines;
  throw fail(
    lines.length === 1 ? `${subject}: ${first.slice(2)}` : [`${subject}:`, ...lines].join('\n'),
  );
}

/** An option that only code can check. The text reads `a function`, or `a function; fix`. */
export function expected<Value>(
  text: string,
  accepts: (value: unknown) => boolean,
): z.ZodCustom<Value> {
  return z.custom<Value>(accepts, { error: `expected ${text}`, abort: true });
}

/**
 * Like `expected`, for an option that may contain a secret by mistake. No message contains its
 * value.
 */
export function expectedHidden<Value>(
  text: string,
  accepts: (value: unknown) => boolean,
): z.ZodCustom<Value> {
  return z.custom<Value>(accepts, {
    error: `expected ${text}`,
    abort: true,
    params: { secret: true },
  });
}

export const anyFunction = expected<(...given: never[]) => unknown>(
  'a function',
  (value) => typeof value === 'function',
);

/** A list of named values in which no two have the same name. */
export function uniquelyNamed<Item extends { readonly name: string }>(
  item: z.ZodType<Item>,
): z.ZodArray<z.ZodType<Item>> {
  return z.array(item).superRefine((items, context) => {
    const names = items.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice === undefined) return;
    const message = `expected different names, got ${show(twice)} twice; rename one`;
    context.addIssue({ code: 'custom', message, params: { secret: true } });
  });
}

function unknownOption(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys' || !(issue.inst instanceof z.ZodObject)) return undefined;
  const known = Object.keys(issue.inst.shape);
  return issue.keys
    .map((key) => {
      const meant = likelyMeant(key, known);
      const hint = meant === undefined ? 'the options are' : `did you mean ${meant}? Options:`;
      return `${show(key)} is not an option; ${hint} ${known.join(', ')}`;
    })
    .join('\n  ');
}
