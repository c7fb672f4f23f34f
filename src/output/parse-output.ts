import type { z } from 'zod';
import type { TagSet } from '../core/definition/definition.js';
import { PerdureError } from '../core/errors.js';
import { type Json, type JsonObject, isObject } from '../core/text/json.js';
import type { ParsedAnswer } from '../core/transcript/outcome.js';
import { guarded } from '../tools/errors.js';
import { headBytes, normalizeError } from '../tools/result/plain.js';
import { describeIssues } from '../validation/check-options.js';
import { extractJson } from './extract-json.js';
import { parseTags, rejectOutput, toPlainOutput } from './parse-tags.js';
import { type OutputSchema, outputSchema, removeAbsentNulls } from './schemas.js';

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

/**
 * A user's parser: returns the output, or throws, preferably a `ParseError`, what the model should
 * fix.
 */
export type ParseFunction = (text: string, options: { readonly context: Json }) => unknown;

/** How an agent's answer is parsed. */
export type AnswerParser =
  | { readonly type: 'zod'; readonly schema: z.ZodType }
  | { readonly type: 'tags'; readonly tags: TagSet }
  | { readonly type: 'function'; readonly parse: ParseFunction };

interface ParseOptions {
  /** The run's `context`, for the user's parser. */
  readonly context?: Json;
  /** Milliseconds that user code may take; 5,000 by default. */
  readonly limitMs?: number;
}

/**
 * Parses a model's answer into its output, or into the problem that the model should fix.
 *
 * Contract: never rejects, and waits at most `limitMs` for user code, so that no parser can lose
 * the answer.
 */
export async function parseAnswer(
  parser: AnswerParser,
  text: string,
  options: ParseOptions = {},
): Promise<ParsedAnswer> {
  switch (parser.type) {
    case 'zod': {
      const extracted = extractJson(text);
      return extracted.ok ? parseWithZod(parser.schema, extracted.value, options) : extracted;
    }
    case 'tags':
      return parseTags(parser.tags, text);
    case 'function':
      return parseWithFunction(parser.parse, text, options);
  }
}

async function parseWithFunction(
  parse: ParseFunction,
  text: string,
  { context = null, limitMs }: ParseOptions,
): Promise<ParsedAnswer> {
  const result = await guarded(
    'the output function of the agent',
    async (): Promise<ParsedAnswer> => {
      try {
        return toPlainOutput(await parse(text, { context }));
      } catch (thrown) {
        const { type, message } = normalizeError(thrown);
        // Compared by name: several copies of the package may be loaded.
        if (type === 'ParseError') return { ok: false, problem: ownMessage(thrown) ?? message };
        throw thrown;
      }
    },
    limitMs,
  );
  if (result.ok) return result.value;
  return { ok: false, problem: `The answer could not be read: ${result.message}` };
}

/** Returns the message without its causes, which are for the developer; bounded and redacted. */
function ownMessage(thrown: unknown): string | undefined {
  const message: unknown = thrown instanceof Error ? thrown.message : undefined;
  if (typeof message !== 'string' || message === '') return undefined;
  return normalizeError({ message }).message;
}

/**
 * Thrown by an output function for an answer that the model should fix. The model reads the message
 * verbatim, so it should name the fault and the correct form. Any other error also rejects the
 * answer.
 *
 * @example
 * ```ts
 * import { defineAgent } from 'perdure';
 * import { ParseError } from 'perdure/output';
 *
 * export const counter = defineAgent({
 *   name: 'counter',
 *   instructions: 'Answer with a number.',
 *   output: (text) => {
 *     const count = Number(text);
 *     if (Number.isInteger(count)) return count;
 *     throw new ParseError(`expected a whole number, got ${text.slice(0, 40)}`);
 *   },
 * });
 * ```
 */
export class ParseError extends PerdureError {
  static readonly code = 'parse';
  override readonly name = 'ParseError';
  override readonly code = ParseError.code;
}
