import type { z } from 'zod';
import { isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';
import type { ParsedAnswer } from '../core/reply.js';
import { describeIssues } from '../validation/describe-issues.js';
import { guarded } from '../tools/guard.js';
import { headBytes } from '../tools/utf8.js';
import { withoutAbsentNulls } from './absent-nulls.js';
import { outputSchema, type OutputSchema } from './output-schema.js';
import { plainOutput, refusedOutput } from './plain-output.js';

const MAX_PROBLEM_BYTES = 4_000;

/**
 * An answer's value against the author's schema: its refinements run, its transforms are applied, and
 * what it gives becomes plain JSON. `{"value": …}` is opened where the schema is of no object; a null
 * in the place of an optional key counts as absent (see `strictSchema`).
 *
 * Contract: never rejects, and waits at most `limitMs` (5 s by default): a refinement that throws or
 * hangs is a problem with its message.
 */
export async function parseWithZod(
  schema: z.ZodType,
  value: Json,
  options: { readonly limitMs?: number } = {},
): Promise<ParsedAnswer> {
  const known = knownSchema(schema);
  const present = known === undefined ? value : withoutNulls(value, known);
  const isOpened = known?.wrapped === true && isWrapping(present);
  const input = isOpened ? present.value : present;
  const result = await guarded(
    'an output schema',
    () => schema.safeParseAsync(input),
    options.limitMs,
  );
  if (!result.ok) {
    return refused(`The answer could not be checked: ${result.message}`, input);
  }
  if (result.value.success) return plainOutput(result.value.data);
  const inside = isOpened ? ['value'] : [];
  const issues = result.value.error.issues.map((issue) => ({
    ...issue,
    path: [...inside, ...issue.path],
  }));
  const lines = describeIssues(issues, present, {
    root: 'the whole answer',
    keys: {
      known: Object.keys(propertiesOf(known)),
      unrecognized: (keys, nearest) =>
        `there is no key ${keys}${nearest === '' ? '' : `; the keys are ${nearest}`}`,
    },
  });
  if (known?.wrapped === true && !isOpened) {
    lines.push('- the answer must be an object with the one key "value"');
  }
  return refused(['The answer is not valid:', ...lines].join('\n'), input);
}

/** A schema that has no JSON form is refused where an agent is defined; here it is used as it is. */
function knownSchema(schema: z.ZodType): OutputSchema | undefined {
  try {
    return outputSchema(schema);
  } catch {
    return undefined;
  }
}

function withoutNulls(value: Json, { schema, wrapped }: OutputSchema): Json {
  if (!wrapped || isWrapping(value)) return withoutAbsentNulls(value, schema);
  const bare = withoutAbsentNulls({ value }, schema);
  return isWrapping(bare) ? bare.value : value;
}

function isWrapping(value: Json): value is JsonObject & { readonly value: Json } {
  return isObject(value) && Object.keys(value).length === 1 && value['value'] !== undefined;
}

function propertiesOf(known: OutputSchema | undefined): object {
  const properties = known?.schema['properties'];
  return isObject(properties) ? properties : {};
}

function refused(problem: string, value: Json): ParsedAnswer {
  return refusedOutput(headBytes(problem, MAX_PROBLEM_BYTES), value);
}
