import { z } from 'zod';
import { InputError } from '../core/errors.js';
import { type JsonObject, isObject } from '../core/text/json.js';
import { toMs } from '../core/text/text.js';
import { redactMessage } from '../secrets/redact.js';
import {
  type OptionSchemas,
  anyFunction,
  checkOptions,
  durableDuration,
  expected,
  property,
  timerDuration,
  zodKind,
} from '../validation/check-options.js';
import { checkArguments, orderedKeywords, writtenSchema } from './arguments/check-arguments.js';
import { guarded, workflowOlder } from './errors.js';
import { headBytes, normalizeError } from './result/plain.js';
import type { ToolOptions } from './tool-options.js';
import type { DefinedTool, Tool, ToolContext } from './tool.js';

const MAX_SUMMARY_CHARACTERS = 200;
const MAX_ACTIONS = 20;

/** Options about an execution on a worker. */
const WORKER_OPTIONS = ['timeout', 'heartbeat', 'retry', 'verify', 'undo', 'inline'] as const;

const catalogWord = z.string().min(1).max(64);

const toolOptions = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-zA-Z0-9_-]{1,64}$/, 'expected 1 to 64 letters, digits, "_" and "-"'),
    description: expected(
      'a text that tells the model what the tool does',
      (value) => typeof value === 'string' && value.trim() !== '',
    ),
    input: expected(
      'a z.object({…}) of zod 4, imported from "zod"; write the fields in z.object({ … })',
      isZodObject,
    ).refine(
      hasNoPrototypeField,
      'expected no field `__proto__`, which is refused in arguments; rename it',
    ),
    effect: z.enum(
      ['read', 'keyed', 'once'],
      'expected "read" (changes nothing), "keyed" (the destination honors the idempotency key) or ' +
        '"once" (must never happen twice); there is no default',
    ),
    output: expected('a zod schema', (value) => zodKind(value) !== undefined).optional(),
    approval: expected(
      '"never", "always" or a function',
      (value) => value === 'never' || value === 'always' || typeof value === 'function',
    ).optional(),
    timeout: timerDuration.optional(),
    heartbeat: timerDuration.optional(),
    retry: z.strictObject({ attempts: z.int().min(1).optional() }).optional(),
    ends: z.boolean().optional(),
    inline: z.boolean().optional(),
    repeat: z.literal('allow').optional(),
    catalog: z
      .strictObject({
        summary: z.string().max(MAX_SUMMARY_CHARACTERS),
        category: catalogWord,
        actions: z.array(catalogWord).max(MAX_ACTIONS),
      })
      .optional(),
    describe: anyFunction.optional(),
    verify: anyFunction.optional(),
    failed: anyFunction.optional(),
    undo: anyFunction.optional(),
    undoWithin: durableDuration.optional(),
    expires: durableDuration.optional(),
    execute: anyFunction.optional(),
  } satisfies OptionSchemas<ToolOptions<z.ZodObject, z.ZodType>>)
  .refine(({ effect, verify }) => verify === undefined || effect === 'once', {
    path: ['verify'],
    error: 'expected only with effect "once"; other effects leave no outcome unknown',
  })
  .refine(({ effect, inline }) => inline !== true || effect === 'read', {
    path: ['inline'],
    error:
      'expected only with effect "read"; after the death of a worker, an inline call is executed again: remove it, or correct `effect`',
  })
  .refine(({ effect, retry }) => effect !== 'once' || (retry?.attempts ?? 1) === 1, {
    path: ['retry', 'attempts'],
    error: 'expected 1 with effect "once"; omit it, or make the tool "keyed"',
  })
  .refine(({ effect, undo }) => undo === undefined || effect !== 'read', {
    path: ['undo'],
    error:
      'expected none with effect "read", which changes nothing; remove it, or correct `effect`',
  })
  .refine(({ undo, undoWithin }) => undoWithin === undefined || undo !== undefined, {
    path: ['undoWithin'],
    error: 'expected only with `undo`; add `undo`, or remove it',
  })
  .refine(({ expires, execute }) => expires === undefined || execute === undefined, {
    path: ['expires'],
    error:
      'expected only without `execute`, where the run waits for a result; remove it, or use `timeout`',
  })
  .superRefine((options, context) => {
    if (options.execute !== undefined) return;
    if ('execute' in options) {
      const message = 'expected a function; omit it only if the caller provides the result';
      context.addIssue({ code: 'custom', path: ['execute'], message });
    }
    for (const option of WORKER_OPTIONS) {
      if (options[option] === undefined) continue;
      const message =
        'expected none without `execute`: the worker executes nothing, and the result comes from ' +
        'the caller; remove it, or add `execute`';
      context.addIssue({ code: 'custom', path: [option], message });
    }
  });

/** Throws an `InputError` with a line for each fault in a tool's definition. */
function assertToolOptions(options: unknown): void {
  checkOptions('tool', { schema: toolOptions, options });
}

/** Classes of zod/mini have no methods, so `strict` tells them apart. */
function isZodObject(value: unknown): value is z.ZodObject {
  return zodKind(value) === 'object' && typeof property(value, 'strict') === 'function';
}

function hasNoPrototypeField(value: unknown): boolean {
  const shape = property(value, 'shape');
  return !isObject(shape) || !Object.hasOwn(shape, '__proto__');
}

const DEFAULT_TIMEOUT_MS = 120_000;
const DEFAULT_HEARTBEAT_MS = 10_000;
const DEFAULT_ATTEMPTS = 3;
const DEFAULT_UNDO_MS = 24 * 60 * 60_000;

/**
 * Makes a tool from a function. Arguments that `input` does not declare are refused, unless it is a
 * loose object.
 *
 * Throws an `InputError` if the definition is invalid, with a line `field: expected X, got Y; fix`
 * for each fault.
 *
 * @example
 * ```ts
 * import { defineTool } from 'perdure';
 * import { z } from 'zod';
 *
 * export const refund = defineTool({
 *   name: 'refund',
 *   description: 'Refunds an order.',
 *   effect: 'keyed',
 *   input: z.object({ order: z.string(), euros: z.number().positive() }),
 *   execute: async ({ order, euros }, { idempotencyKey, signal }) => {
 *     const url = `https://shop.example/orders/${order}/refunds`;
 *     const headers = { 'idempotency-key': idempotencyKey };
 *     const body = JSON.stringify({ euros });
 *     const response = await fetch(url, { method: 'POST', headers, body, signal });
 *     return await response.text();
 *   },
 * });
 * ```
 */
export function defineTool<Input extends z.ZodObject, Output extends z.ZodType = z.ZodType>(
  options: ToolOptions<Input, Output>,
): DefinedTool<Input, Output> {
  assertToolOptions(options);
  const closed = options.input.def.catchall === undefined;
  const input = closed ? options.input.strict() : options.input;
  const attempts = options.retry?.attempts ?? (options.effect === 'once' ? 1 : DEFAULT_ATTEMPTS);
  const executeParsed: DefinedTool<Input, Output>['executeParsed'] =
    options.execute?.bind(options) ?? refuseExecution;
  return Object.freeze({
    name: options.name,
    description: options.description,
    input,
    parameters: namingTool(options.name, () => argumentsSchema(input)),
    effect: options.effect,
    timeoutMs: toMs(options.timeout ?? DEFAULT_TIMEOUT_MS),
    heartbeatMs: toMs(options.heartbeat ?? DEFAULT_HEARTBEAT_MS),
    attempts,
    ...optionalParts(options),
    ...(options.execute === undefined && clientParts(options)),
    execute: validatingExecute({ name: options.name, input }, executeParsed),
    executeParsed,
  });
}

/**
 * Returns the `execute` of a tool: it validates the input and then calls `executeParsed`. It
 * rejects with an `InputError` if the input does not fit `input`.
 */
export function validatingExecute<Result>(
  tool: Pick<Tool, 'name' | 'input'>,
  executeParsed: (input: unknown, context: ToolContext) => Result | Promise<Result>,
): (input: unknown, context: ToolContext) => Promise<Result> {
  return async (input, context) => {
    const checked = await checkArguments(tool, input);
    if (!checked.ok) throw new InputError(checked.problem.message);
    return await executeParsed(checked.value, context);
  };
}

/** Returns a schema; adds the tool's name to the error if JSON schema cannot express it. */
function namingTool(name: string, schema: () => JsonObject): JsonObject {
  try {
    return schema();
  } catch (error) {
    throw new InputError(`tool "${name}": ${normalizeError(error).message}`, { cause: error });
  }
}

/**
 * Returns the optional parts. Functions stay bound to the author's object, which is their `this`.
 */
function optionalParts<Input extends z.ZodObject, Output extends z.ZodType>(
  options: ToolOptions<Input, Output>,
): Partial<Tool> {
  const { output, approval, ends, inline, repeat, catalog } = options;
  return {
    ...(output && { output }),
    ...(approval && { approval }),
    ...(ends && { ends }),
    ...(inline && { inline }),
    ...(repeat && { repeat }),
    ...(catalog && { catalog }),
    ...(options.describe && { describe: options.describe.bind(options) }),
    ...(options.verify && { verify: options.verify.bind(options) }),
    ...(options.failed && { failed: options.failed.bind(options) }),
    ...(options.undo && {
      undo: options.undo.bind(options),
      undoMs: toMs(options.undoWithin ?? DEFAULT_UNDO_MS),
    }),
  };
}

/** Returns the additional parts of a tool without `execute`, whose result the caller provides. */
function clientParts<Input extends z.ZodObject, Output extends z.ZodType>({
  name,
  output,
  expires,
}: ToolOptions<Input, Output>): Partial<Tool> {
  return {
    kind: 'client',
    ...(expires !== undefined && { expiresMs: toMs(expires) }),
    ...(output && { result: namingTool(name, () => writtenSchema(output, 'output')) }),
  };
}

function refuseExecution(): never {
  throw workflowOlder('the tool has no `execute`: the caller provides the result');
}

/**
 * Returns the JSON schema of a tool's arguments as the model sees it: unnamed keys are refused,
 * unless the object is loose. Throws an `InputError` that names each path that JSON schema cannot
 * express.
 */
function argumentsSchema(input: z.ZodObject): JsonObject {
  const schema = writtenSchema(input, 'input');
  const closed = 'additionalProperties' in schema ? {} : { additionalProperties: false };
  return orderedKeywords({ ...schema, ...closed });
}

const MAX_BYTES = 200;

/**
 * Describes a call to people in one line of at most 200 bytes. Returns undefined if the tool has no
 * `describe` or if it fails, because a faulty description must not prevent a call.
 */
export async function describeCall(
  tool: Pick<Tool, 'name' | 'describe'>,
  input: unknown,
): Promise<string | undefined> {
  if (!tool.describe) return undefined;
  const result = await guarded(`describe of tool "${tool.name}"`, () => tool.describe?.(input));
  if (!result.ok || typeof result.value !== 'string') return undefined;
  const line = redactMessage(result.value)
    .replace(/[\p{Control}\p{Bidi_Control}]+/gu, ' ')
    .trim();
  if (line === '') return undefined;
  return Buffer.byteLength(line) > MAX_BYTES ? `${headBytes(line, MAX_BYTES - 3)}…` : line;
}
