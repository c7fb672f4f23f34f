import type { z } from 'zod';
import type { ModelSettings } from '../core/definition/definition.js';
import type {
  CatalogEntry,
  Effect,
  ToolDefinition,
  ToolKind,
} from '../core/definition/tool-definition.js';
import { InputError } from '../core/errors.js';
import type { RunToolResult } from '../core/run/contract.js';
import { type Json, type JsonObject, isObject } from '../core/text/json.js';
import type { ArtifactResult } from './built-in/artifact.js';

/**
 * What a tool's functions receive in addition to the arguments. `perdure/testing` makes one for
 * unit tests.
 */
export interface ToolContext {
  /** The same in every attempt of this call; pass it to the destination of a `keyed` tool. */
  readonly idempotencyKey: string;
  /** Aborts when the call is canceled or its time is up. */
  readonly signal: AbortSignal;
  /**
   * Reports that a long call is alive. Optional, because the engine does so while the event loop
   * runs.
   */
  heartbeat(details?: Json): void;
  /** Writes to the worker's log; secrets are redacted. */
  log(message: string, fields?: JsonObject): void;
  readonly run: {
    /** The workflow id. */
    readonly id: string;
    /** The Temporal run id of the segment that made the call. */
    readonly runId: string;
    /** From 1. */
    readonly turn: number;
    /** From 1 in each turn. */
    readonly step: number;
  };
  readonly call: {
    readonly id: string;
    /** From 1. */
    readonly attempt: number;
    /**
     * When the server scheduled this execution, Unix time in ms by the server's clock. Every later
     * execution of the call has a later time, even after a decision or a reset. A worker that
     * freezes keeps the time of its own execution, so a destination can refuse it (see `verify`).
     */
    readonly scheduledAt: number;
  };
  /** The run's `context`: user functions receive it, the model never does. */
  readonly context: Json;
  /** The artifacts of earlier calls. */
  readonly artifacts: CallArtifacts;
}

/** A request of a node's function to a model. */
export interface GenerateOptions {
  /** The name of a model, as an agent has it; default: the graph's model. */
  readonly model?: string;
  /** What the model reads as the message of the user. */
  readonly message: string;
  /** The system message; default: none. */
  readonly instructions?: string;
  /** Parameters of the model, as for an agent; default: none. */
  readonly settings?: ModelSettings;
}

/** What the function of a graph's node receives: the context of a tool, and `generate`. */
export interface NodeContext extends ToolContext {
  /**
   * Makes a model call and returns its text, or, with `output`, the value that the schema parses
   * from it; a reply that does not fit is sent back up to four times. The call is durable: an
   * attempt of the same visit whose worker is lost does not pay again for a reply that has arrived.
   * Tokens and cost count for the run, and its limits apply. Readers of the run's stream get the
   * reply as it is written (`node-delta`); it is not part of the answer.
   */
  readonly generate: {
    <Output>(options: GenerateOptions & { readonly output: z.ZodType<Output> }): Promise<Output>;
    (options: GenerateOptions & { readonly output?: never }): Promise<string>;
  };
}

/**
 * The artifacts of the run that this call may read: those whose name is one of the texts in its
 * arguments or of the defaults in its `input`. A called agent cannot read its caller's artifacts.
 */
export interface CallArtifacts {
  readonly names: readonly string[];
  /**
   * Returns the whole value as parsed JSON, or, with a schema, what the schema parses it to.
   * Rejects with a `ToolError` if there is no artifact of this name, or if it does not fit the
   * schema.
   */
  readonly get: {
    (name: string): Promise<unknown>;
    <Schema extends z.ZodType>(name: string, schema: Schema): Promise<z.output<Schema>>;
  };
}

/** What an approval predicate receives. The call has no place in the run yet. */
export type ApprovalContext = Pick<ToolContext, 'run' | 'context'>;

/**
 * Returns whether a person has to approve a call: `false` executes it without asking, and `true`
 * asks. A predicate that throws, returns anything else, or takes longer than 5 seconds also asks.
 *
 * It is declared as a method, so a predicate for one tool's input is assignable to that of any
 * tool.
 */
export type ApprovalPredicate<Input> = {
  decide(input: Input, context: ApprovalContext): boolean | Promise<boolean>;
}['decide'];

/** What `verify` receives in addition to the idempotency key. */
export interface VerifyContext {
  /** Aborts when the call is canceled or the time is up. */
  readonly signal: AbortSignal;
  /**
   * When the server scheduled this verification, Unix time in ms by the server's clock: later than
   * every execution with an unknown outcome, and earlier than any that follows.
   */
  readonly scheduledAt: number;
}

/** What `undo` receives in addition to the arguments and the result. */
export interface UndoContext {
  /** The same in every attempt to undo this call, and not the key of the call itself. */
  readonly idempotencyKey: string;
  /** Aborts when the run is canceled or the tool's `timeout` is over. */
  readonly signal: AbortSignal;
  readonly run: ToolContext['run'];
  /** The run's `context`. */
  readonly context: Json;
}

/**
 * Whether a call with an unknown outcome has happened. `happened: false` also means that it can no
 * longer happen. Undefined if it remains unknown, so a person decides.
 */
export type Verification =
  | { readonly happened: true; readonly result?: unknown }
  | { readonly happened: false }
  | undefined;

/**
 * A tool made by `defineTool`: checked, with defaults filled in and its input type erased.
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
  readonly inline?: true;
  readonly repeat?: 'allow';
  /** The executor of the calls if it is not a worker; absent if a worker executes them. */
  readonly kind?: ToolKind;
  /** The agent behind a tool of kind `agent`. */
  readonly calls?: ToolDefinition['calls'];
  /** For a tool with `undo`: how long a success can be undone, in ms. */
  readonly undoMs?: number;
  /**
   * For a tool without `execute`: milliseconds after which a call expires; absent if it never does.
   */
  readonly expiresMs?: number;
  /** For a tool without `execute`: JSON schema of its result; absent if any value is accepted. */
  readonly result?: JsonObject;
  readonly catalog?: CatalogEntry;
  describe?(input: unknown): string;
  verify?(idempotencyKey: string, context: VerifyContext): Verification | Promise<Verification>;
  failed?(result: unknown): boolean;
  undo?(input: unknown, result: unknown, context: UndoContext): void | Promise<void>;
  /**
   * Validates the input as a model would have sent it, and executes the tool. Rejects with an
   * `InputError` if the input does not fit `input`, whose message is what a model would read.
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
export type ToolReturn<Value> = Value | ArtifactResult<Value>;

/**
 * What `executeParsed` returns for a call of a recorded run: the result as the history has it, which
 * was judged and validated when the call was executed. For the engine.
 */
export class RecordedResult {
  readonly result: RunToolResult;
  /** What the tool returned, or why it threw, for those who observe the run. */
  readonly end: { readonly result: unknown } | { readonly error: string };

  constructor(result: RunToolResult, end: RecordedResult['end']) {
    this.result = result;
    this.end = end;
  }
}

/** The tools of one agent by name. */
export interface ToolRegistry {
  get(name: string): Tool | undefined;
  /** The names, sorted to keep the prompt prefix stable. */
  readonly names: readonly string[];
  /** The tools in the order of `names`. */
  readonly tools: readonly Tool[];
}

/** Throws an `InputError` if two tools share a name. */
export function createToolRegistry(tools: readonly Tool[]): ToolRegistry {
  const byName = new Map<string, { readonly tool: Tool; readonly position: number }>();
  for (const [index, tool] of tools.entries()) {
    const position = index + 1;
    const first = byName.get(tool.name);
    if (first)
      throw new InputError(duplicate(tool, { first: first.tool, at: [first.position, position] }));
    byName.set(tool.name, { tool, position });
  }
  const names = [...byName.keys()].toSorted();
  return {
    get: (name) => byName.get(name)?.tool,
    names,
    tools: names.flatMap((name) => byName.get(name)?.tool ?? []),
  };
}

/** Returns whether a value was made by `defineTool`. */
export function isTool(value: unknown): value is Tool {
  return isObject(value) && typeof value['execute'] === 'function' && 'parameters' in value;
}

function duplicate(
  tool: Tool,
  { first, at }: { readonly first: Tool; readonly at: readonly [number, number] },
): string {
  const where = `items ${at[0]} and ${at[1]} of \`tools\``;
  if (first === tool) return `the tool "${tool.name}" is listed twice (${where}); list it once`;
  return (
    `two tools are named "${tool.name}" (${where}): "${clip(first.description)}" and ` +
    `"${clip(tool.description)}"; rename one of them`
  );
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** Whether calls of the tool may need an approval. */
function wantsApproval({ approval = 'never' }: Pick<Tool, 'approval'>): boolean {
  return approval !== 'never';
}

/** Returns the part of a tool that is data: a run pins it at its start, and the model sees it. */
export function toToolDefinition(tool: Tool): ToolDefinition {
  return {
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    effect: tool.effect,
    ...(tool.ends && { ends: true as const }),
    ...(tool.inline && { inline: true as const }),
    ...(tool.repeat && { repeat: tool.repeat }),
    ...(tool.kind && { kind: tool.kind }),
    ...(tool.calls && { calls: tool.calls }),
    ...(tool.verify && { verify: true as const }),
    ...(wantsApproval(tool) && { approval: true as const }),
    ...(tool.undoMs !== undefined && { undoMs: tool.undoMs }),
    ...(tool.expiresMs !== undefined && { expiresMs: tool.expiresMs }),
    ...(tool.result && { result: tool.result }),
    timeoutMs: tool.timeoutMs,
    heartbeatMs: tool.heartbeatMs,
    attempts: tool.attempts,
  };
}
