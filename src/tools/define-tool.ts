import type { z } from 'zod';
import type { CatalogEntry, Effect } from '../core/definition/definition.js';
import { normalizeError } from './result/normalize-error.js';
import { assertToolOptions } from './tool-options.js';
import type {
  ApprovalPredicate,
  DefinedTool,
  ToolReturn,
  Tool,
  ToolContext,
  Verification,
  VerifyContext,
} from './tool.js';
import { InputError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { checkArguments } from './arguments/check-arguments.js';
import { orderedKeywords, writtenSchema } from './arguments/written-schema.js';

const DEFAULT_TIMEOUT_MS = 120_000;
const DEFAULT_HEARTBEAT_MS = 10_000;
const DEFAULT_ATTEMPTS = 3;

/** What an author passes to `defineTool`. The types of both schemas reach the functions. */
export interface ToolOptions<Input extends z.ZodObject, Output extends z.ZodType> {
  /** Letters, digits, `_` and `-`, at most 64 characters; unique in an agent. */
  readonly name: string;
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  /** The schema of the arguments. */
  readonly input: Input;
  /**
   * The side effect: `read` changes nothing, `keyed` is idempotent (the destination honors the
   * idempotency key), `once` must never happen twice.
   */
  readonly effect: Effect;
  /** The schema of the result; default: any value. */
  readonly output?: Output;
  /** Whether a person has to approve a call; this version supports only `never`, the default. */
  readonly approval?: 'never' | 'always' | ApprovalPredicate<z.output<Input>>;
  /** Milliseconds that one execution may take; default 120,000. */
  readonly timeout?: number;
  /** Milliseconds without a heartbeat after which a worker counts as dead; default 10,000. */
  readonly heartbeat?: number;
  /** Executions in all before the model reads an error that the tool throws; default 3, always 1 for `once`. */
  readonly retry?: { readonly attempts?: number };
  /** True: a success ends the turn, and its result is the answer. */
  readonly ends?: boolean;
  /** `allow`: an identical call that has already succeeded is executed again, not answered from memory. */
  readonly repeat?: 'allow';
  /** For agents with `toolExposure: 'catalog'`; default: the description's first sentence, category `other`. */
  readonly catalog?: CatalogEntry;
  /** Describes a call to people, such as "refund 40 € to order 17". */
  describe?(input: z.output<Input>): string;
  /**
   * Only for `once`: resolves an unknown outcome without a person. After `{ happened: false }`, the tool is
   * executed again under the same key.
   *
   * The worker that executed the call may be frozen, and act when it continues. So `verify` may answer
   * `{ happened: false }` only after it has fenced: the destination refuses every execution under this key
   * that was scheduled before `scheduledAt` of the verification. It looks the key up and sets the fence in
   * one transaction. If the destination has no fence, return undefined instead, and a person decides. If it
   * refuses a second effect under one key, make the tool `keyed`, which needs no `verify`.
   *
   * @example
   * ```ts
   * import { defineTool } from 'perdure';
   * import { z } from 'zod';
   *
   * const BANK = 'https://bank.example/refunds';
   *
   * export const refund = defineTool({
   *   name: 'refund',
   *   description: 'Refunds an order.',
   *   effect: 'once',
   *   input: z.object({ order: z.string(), euros: z.number().positive() }),
   *   // The bank refuses a refund that was issued before the fence of its reference.
   *   execute: async (input, { idempotencyKey, call, signal }) => {
   *     const body = JSON.stringify({ ...input, reference: idempotencyKey, issued: call.scheduledAt });
   *     const response = await fetch(BANK, { method: 'POST', body, signal });
   *     if (!response.ok) throw new Error(`the bank answered ${response.status}`);
   *     return await response.text();
   *   },
   *   // The bank sets the fence and looks for the refund, in one transaction.
   *   verify: async (reference, { scheduledAt, signal }) => {
   *     const body = JSON.stringify({ reference, before: scheduledAt });
   *     const response = await fetch(`${BANK}/fences`, { method: 'POST', body, signal });
   *     if (!response.ok) return undefined;
   *     const { refunded } = (await response.json()) as { refunded: boolean };
   *     return refunded ? { happened: true } : { happened: false };
   *   },
   * });
   * ```
   */
  verify?(idempotencyKey: string, context: VerifyContext): Verification | Promise<Verification>;
  /** Reverts a call that succeeded. */
  undo?(input: z.output<Input>, result: z.output<Output>): void | Promise<void>;
  /** Executes a call. The model reads the result as text or JSON, or the name of an `artifact(value)`. */
  execute(
    input: z.output<Input>,
    context: ToolContext,
  ): ToolReturn<z.input<Output>> | Promise<ToolReturn<z.input<Output>>>;
}

/**
 * Makes a tool from a function. Arguments that `input` does not name are refused, unless it is a loose
 * object.
 *
 * Throws an `Error` if the definition cannot work, with a line `field: expected X, got Y; fix` for each
 * fault.
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
  const executeParsed: DefinedTool<Input, Output>['executeParsed'] = options.execute.bind(options);
  return Object.freeze({
    name: options.name,
    description: options.description,
    input,
    parameters: toParameters(options.name, input),
    effect: options.effect,
    timeoutMs: options.timeout ?? DEFAULT_TIMEOUT_MS,
    heartbeatMs: options.heartbeat ?? DEFAULT_HEARTBEAT_MS,
    attempts,
    ...optionalParts(options),
    execute: validatingExecute({ name: options.name, input }, executeParsed),
    executeParsed,
  });
}

/**
 * Returns the `execute` of a tool: it validates the input and then calls `executeParsed`. It rejects with
 * an `InputError` if the input does not fit `input`.
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

function toParameters(name: string, input: z.ZodObject): Tool['parameters'] {
  try {
    return argumentsSchema(input);
  } catch (error) {
    throw new Error(`tool "${name}": ${normalizeError(error).message}`, { cause: error });
  }
}

/** Returns the optional parts. Functions stay bound to the author's object, which is their `this`. */
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
    ...(options.undo && { undo: options.undo.bind(options) }),
  };
}

/**
 * Returns the JSON schema of a tool's arguments as the model sees it: unnamed keys are refused, unless
 * the object is loose. Throws an `Error` that names each path that JSON schema cannot express.
 */
function argumentsSchema(input: z.ZodObject): JsonObject {
  const schema = writtenSchema(input, 'input');
  const closed = 'additionalProperties' in schema ? {} : { additionalProperties: false };
  return orderedKeywords({ ...schema, ...closed });
}
