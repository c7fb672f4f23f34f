import type { z } from 'zod';
import { normalizeError } from './result/normalize-error.js';
import type { ToolOptions } from './tool-options.js';
import { assertToolOptions } from './check-tool-options.js';
import type { DefinedTool, Tool, ToolContext } from './tool.js';
import { InputError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { toMs } from '../core/text/duration.js';
import { workflowOlder } from './tool-error.js';
import { checkArguments } from './arguments/check-arguments.js';
import { orderedKeywords, writtenSchema } from './arguments/written-schema.js';

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
  const { output, approval, ends, repeat, catalog } = options;
  return {
    ...(output && { output }),
    ...(approval && { approval }),
    ...(ends && { ends }),
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
