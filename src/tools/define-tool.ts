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
} from './tool.js';
import { InputError } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { checkArguments } from './arguments/check-arguments.js';
import { orderedKeywords, writtenSchema } from './arguments/written-schema.js';

const DEFAULT_TIMEOUT_MS = 120_000;
const DEFAULT_HEARTBEAT_MS = 10_000;
const DEFAULT_ATTEMPTS = 3;

/** What an author writes. `Input` and `Output` are the zod schemas; their types reach the functions. */
export interface ToolOptions<Input extends z.ZodObject, Output extends z.ZodType> {
  /** Letters, digits, `_` and `-`, at most 64 characters; unique in an agent. */
  readonly name: string;
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  readonly input: Input;
  /** `read` changes nothing, `keyed` honors the idempotency key, `once` must never happen twice. */
  readonly effect: Effect;
  readonly output?: Output;
  readonly approval?: 'never' | 'always' | ApprovalPredicate<z.output<Input>>;
  /** Milliseconds one execution may take; 120,000 by default. */
  readonly timeout?: number;
  /** Milliseconds after which a silent worker is taken for dead; 10,000 by default. */
  readonly heartbeat?: number;
  /** Executions in all before a throwing tool is reported to the model; 3 by default, always 1 for `once`. */
  readonly retry?: { readonly attempts?: number };
  /** A success ends the turn and its result is the answer. */
  readonly ends?: boolean;
  /** `allow`: an identical call that has already succeeded is executed again. */
  readonly repeat?: 'allow';
  /** For agents with `toolExposure: 'catalog'`; default: the description's first sentence, category `other`. */
  readonly catalog?: CatalogEntry;
  /** For people: "refund 40 € to order 17". */
  describe?(input: z.output<Input>): string;
  /** Only for `once`: settles an unknown outcome without a person. */
  verify?(
    idempotencyKey: string,
    context: { readonly signal: AbortSignal },
  ): Verification | Promise<Verification>;
  undo?(input: z.output<Input>, result: z.output<Output>): void | Promise<void>;
  /** What it gives is told to the model, as text or JSON; `artifact(value)` is kept and named instead. */
  execute(
    input: z.output<Input>,
    context: ToolContext,
  ): ToolReturn<z.input<Output>> | Promise<ToolReturn<z.input<Output>>>;
}

/**
 * Makes a tool of a plain function. Arguments that the definition does not name are refused, unless
 * `input` is a loose object.
 *
 * Throws when the definition cannot work, with the value at fault and what would be right.
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
    parameters: parametersOf(options.name, input),
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

function parametersOf(name: string, input: z.ZodObject): Tool['parameters'] {
  try {
    return argumentsSchema(input);
  } catch (error) {
    throw new Error(`tool "${name}": ${normalizeError(error).message}`, { cause: error });
  }
}

/** Functions stay bound to the author's object, so that `this` is what the author wrote. */
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
 * The JSON schema of a tool's arguments, as the model sees it: what it does not name is refused,
 * unless the object is loose.
 *
 * Throws an error that names each path which JSON schema cannot express.
 */
function argumentsSchema(input: z.ZodObject): JsonObject {
  const schema = writtenSchema(input, 'input');
  const closed = 'additionalProperties' in schema ? {} : { additionalProperties: false };
  return orderedKeywords({ ...schema, ...closed });
}
