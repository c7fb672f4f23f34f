import type { z } from 'zod';
import type { CatalogEntry, Effect, ToolDefinition } from '../core/definition/definition.js';
import type { Json, JsonObject } from '../core/json.js';
import type { Artifact } from './built-in/artifact.js';

/** What a tool's functions are handed beside the arguments. */
export interface ToolContext {
  /** The same in every attempt of this call; hand it to the destination of a `keyed` tool. */
  readonly idempotencyKey: string;
  /** Aborts when the call is cancelled or its time is over. */
  readonly signal: AbortSignal;
  /** Tells the engine that a long call is alive. Optional: it is also told while the event loop runs. */
  heartbeat(details?: Json): void;
  log(message: string, fields?: JsonObject): void;
  readonly run: {
    /** The workflow id. */
    readonly id: string;
    /** The Temporal run id of the segment that made the call. */
    readonly runId: string;
    readonly turn: number;
    readonly step: number;
  };
  readonly call: {
    readonly id: string;
    /** From 1. */
    readonly attempt: number;
  };
  /** The run's `context`: known to user functions, never to the model. */
  readonly context: Json;
  /** What earlier calls have handed over with `artifact`. */
  readonly artifacts: CallArtifacts;
}

/**
 * The artifacts of the run, as far as this call may read them: those that its arguments name, by a
 * text that is the name from end to end, or that a default in its `input` names. An agent that is
 * called has none of its caller's.
 */
export interface CallArtifacts {
  readonly names: readonly string[];
  /**
   * The whole value, as JSON gives it back; with a schema, what that makes of it. Rejects with a
   * `ToolError` that names those there are, where there is none of this name, or where it does not
   * fit the schema.
   */
  readonly get: {
    (name: string): Promise<unknown>;
    <Schema extends z.ZodType>(name: string, schema: Schema): Promise<z.output<Schema>>;
  };
}

/** What an approval predicate knows: the call has no place in the run yet. */
export type ApprovalContext = Pick<ToolContext, 'run' | 'context'>;

/** Written as a method, so that a predicate of one tool's input still is one of any tool. */
export type ApprovalPredicate<Input> = {
  decide(input: Input, context: ApprovalContext): boolean | Promise<boolean>;
}['decide'];

/** What became of a call whose outcome is unknown; undefined when it cannot be told, so a person decides. */
export type Verification =
  { readonly happened: true; readonly result?: unknown } | { readonly happened: false } | undefined;

/**
 * A tool as `defineTool` made it: checked, defaults filled in, input type erased.
 *
 * `executeParsed`, `describe`, and `undo` receive only values that `input` has parsed.
 */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodObject;
  /** JSON schema of the arguments, as the model sees it. */
  readonly parameters: JsonObject;
  readonly effect: Effect;
  readonly timeoutMs: number;
  readonly heartbeatMs: number;
  readonly attempts: number;
  readonly output?: z.ZodType;
  readonly approval?: 'never' | 'always' | ApprovalPredicate<unknown>;
  readonly ends?: true;
  readonly repeat?: 'allow';
  /** A call that the workflow answers itself; `execute` is never called. Only built-in tools have it. */
  readonly kind?: 'wait' | 'agent' | 'artifacts';
  /** The agent behind a tool of kind `agent`. */
  readonly calls?: ToolDefinition['calls'];
  readonly catalog?: CatalogEntry;
  describe?(input: unknown): string;
  verify?(
    idempotencyKey: string,
    context: { readonly signal: AbortSignal },
  ): Verification | Promise<Verification>;
  undo?(input: unknown, result: unknown): void | Promise<void>;
  /**
   * Validates the input as a model would have sent it, and executes the tool. Rejects with an
   * `InputError` if the input does not fit `input`, with the message that a model would read.
   */
  execute(input: unknown, context: ToolContext): Promise<unknown>;
  /** Executes the tool with arguments that `checkArguments` returned. For the engine. */
  executeParsed(input: unknown, context: ToolContext): unknown;
}

/** A tool whose `execute` has the types of its schemas, for unit tests and direct calls. */
export interface DefinedTool<Input extends z.ZodObject, Output extends z.ZodType> extends Tool {
  execute(input: z.input<Input>, context: ToolContext): Promise<ToolReturn<z.input<Output>>>;
  executeParsed(
    input: unknown,
    context: ToolContext,
  ): ToolReturn<z.input<Output>> | Promise<ToolReturn<z.input<Output>>>;
}

/** What `execute` of a tool returns: the value that `output` describes, or an artifact of it. */
export type ToolReturn<Value> = Value | Artifact<Value>;
