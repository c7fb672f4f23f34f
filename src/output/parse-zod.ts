import type { z } from 'zod';
import { isObject } from '../core/json.js';
import type { Json, JsonObject } from '../core/json.js';
import type { ParsedAnswer } from '../core/reply.js';
import { describeIssues } from '../validation/describe-issues.js';
import { guarded } from '../tools/guard.js';
import { headBytes } from '../tools/utf8.js';
import { removeAbsentNulls } from './absent-nulls.js';
import { outputSchema, type OutputSchema } from './output-schema.js';
import { toPlainOutput, rejectOutput } from './plain-output.js';

const MAX_PROBLEM_BYTES = 4_000;

/**
 * Parses an answer's value with the author's schema: runs its refinements, applies its transforms,
 * and converts the result to plain JSON. `{"value": …}` is unwrapped if the schema is not an object
 * schema; a null for an optional key counts as absent (see `toStrictSchema`).
 *
 * Contract: never rejects, and waits at most `limitMs` (5 s by default). A refinement that throws
 * or hangs is a problem with its message.
 */
export async function parseWithZod(
  schema: z.ZodType,
  value: Json,
  options: { readonly limitMs?: number } = {},
): Promise<ParsedAnswer> {
  const known = knownSchema(schema);
  const present = known === undefined ? value : withoutNulls(value, known);
  const isUnwrapped = known?.wrapped === true && isWrapping(present);
  const input = isUnwrapped ? present.value : present;
  const result = await guarded(
    'an output schema',
    () => schema.safeParseAsync(input),
    options.limitMs,
  );
  if (!result.ok) {
    return reject(`The answer could not be checked: ${result.message}`, input);
  }
  if (result.value.success) return toPlainOutput(result.value.data);
  const inside = isUnwrapped ? ['value'] : [];
  const issues = result.value.error.issues.map((issue) => ({
    ...issue,
    path: [...inside, ...issue.path],
  }));
  const lines = describeIssues(issues, present, {
    root: 'the whole answer',
    keys: {
      known: Object.keys(propertiesOf(known)),
      unrecognized: (keys, nearest) =>
        `unknown key ${keys}${nearest === '' ? '' : `; expected one of ${nearest}`}`,
    },
  });
  if (known?.wrapped === true && !isUnwrapped) {
    lines.push('- the answer must be an object with the one key "value"');
  }
  return reject(['The answer is not valid:', ...lines].join('\n'), input);
}

/** Returns undefined for a schema without a JSON form; `defineAgent` refuses those. */
function knownSchema(schema: z.ZodType): OutputSchema | undefined {
  try {
    return outputSchema(schema);
  } catch {
    return undefined;
  }
}

function withoutNulls(value: Json, { schema, wrapped }: OutputSchema): Json {
  if (!wrapped || isWrapping(value)) return removeAbsentNulls(value, schema);
  const bare = removeAbsentNulls({ value }, schema);
  return isWrapping(bare) ? bare.value : value;
}

function isWrapping(value: Json): value is JsonObject & { readonly value: Json } {
  return isObject(value) && Object.keys(value).length === 1 && value['value'] !== undefined;
}

function reject(problem: string, value: Json): ParsedAnswer {
  return rejectOutput(headBytes(problem, MAX_PROBLEM_BYTES), value);
}

function propertiesOf(known: OutputSchema | undefined): object {
  const properties = known?.schema['properties'];
  return isObject(properties) ? properties : {};
}
