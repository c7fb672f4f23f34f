import type { z } from 'zod';
import type { Json, JsonObject } from '../core/text/json.js';
import { ToolError } from '../tools/errors.js';
import { assertOptionNames, type OptionNames } from '../validation/option-names.js';
import type { CallArtifacts, GenerateOptions, NodeContext, ToolContext } from '../tools/tool.js';

/** The parts of a tool's context that a test chooses; each has a default. */
export interface ToolContextOptions {
  /** Default `test-key`. */
  readonly idempotencyKey?: string;
  /** Aborts the call; default: a signal that never aborts. */
  readonly signal?: AbortSignal;
  /** The run's `context`; default null. */
  readonly context?: Json;
  /** Default: id `test-run`, turn 1, step 1. */
  readonly run?: Partial<ToolContext['run']>;
  /** Default: id `test-call`, attempt 1, scheduled now. */
  readonly call?: Partial<ToolContext['call']>;
  /**
   * The artifacts that the call may read, by name; as in a run, the tool gets copies as JSON.
   * Default: none.
   */
  readonly artifacts?: Readonly<Record<string, unknown>>;
}

const TOOL_OPTIONS: OptionNames<Required<ToolContextOptions>> = {
  idempotencyKey: true,
  signal: true,
  context: true,
  run: true,
  call: true,
  artifacts: true,
};

/** A tool's context that records what the tool reports. */
export interface TestToolContext extends ToolContext {
  /** The details of each `heartbeat`, oldest first; undefined where the tool passed none. */
  readonly heartbeats: readonly (Json | undefined)[];
  /** What the tool has logged, oldest first. */
  readonly logged: readonly { readonly message: string; readonly fields?: JsonObject }[];
}

/**
 * Creates the context with which a unit test calls `tool.execute`. Its artifacts, heartbeats, and
 * logs work without a run, a worker, or a server.
 *
 * @example
 * ```ts
 * import { defineTool } from 'perdure';
 * import { toolContext } from 'perdure/testing';
 * import { z } from 'zod';
 *
 * const greet = defineTool({
 *   name: 'greet',
 *   description: 'Greets the user.',
 *   effect: 'read',
 *   input: z.object({ name: z.string() }),
 *   execute: ({ name }, { log }) => {
 *     log('greeted');
 *     return `Hello ${name}`;
 *   },
 * });
 *
 * const context = toolContext({ context: { tenant: 'acme' } });
 * console.log(await greet.execute({ name: 'Ann' }, context), context.logged);
 * ```
 */
export function toolContext(options: ToolContextOptions = {}): TestToolContext {
  assertOptionNames<ToolContextOptions>(options, TOOL_OPTIONS);
  const heartbeats: (Json | undefined)[] = [];
  const logged: TestToolContext['logged'][number][] = [];
  return {
    idempotencyKey: options.idempotencyKey ?? 'test-key',
    signal: options.signal ?? new AbortController().signal,
    context: options.context ?? null,
    run: { id: 'test-run', runId: 'test-run-segment', turn: 1, step: 1, ...options.run },
    call: { id: 'test-call', attempt: 1, scheduledAt: Date.now(), ...options.call },
    artifacts: artifactsOf(new Map(Object.entries(options.artifacts ?? {}))),
    heartbeat: (details) => void heartbeats.push(details),
    log: (message, fields) => void logged.push({ message, ...(fields && { fields }) }),
    heartbeats,
    logged,
  };
}

/** The parts of a node's context that a test chooses. */
export interface NodeContextOptions extends ToolContextOptions {
  /**
   * The replies to `generate`, in order: a text, or, for a call with an `output`, the value, which
   * the schema must accept. An error is thrown. Default: none.
   */
  readonly replies?: readonly unknown[];
}

/** A node's context: that of a tool, `generate`, and the `exit` of a `route`. */
export interface TestNodeContext<Exits extends string = string>
  extends TestToolContext, NodeContext {
  /** What the function has passed to `generate`, oldest first. */
  readonly generated: readonly GenerateOptions[];
  /** Returns the choice as data, so a test can compare it. */
  readonly exit: <Name extends Exits>(
    name: Name,
    patch?: object,
  ) => { readonly exit: Name; readonly patch?: object };
}

/**
 * Creates the context with which a unit test calls the function of a graph's `run`, `route`, or
 * `each` node. Write the function outside the graph; its test then needs no run, worker, or server.
 *
 * @example
 * ```ts
 * import { nodeContext } from 'perdure/testing';
 *
 * interface Ticket {
 *   readonly text: string;
 * }
 *
 * const sort = async (
 *   { text }: Ticket,
 *   { exit }: Pick<ReturnType<typeof nodeContext<'urgent' | 'later'>>, 'exit'>,
 * ) => (text.includes('!') ? exit('urgent', { text: text.trim() }) : exit('later'));
 *
 * console.log(await sort({ text: 'fire!' }, nodeContext()));
 *
 * const context = nodeContext({ replies: ['Dear Ann, …'] });
 * console.log(await context.generate({ message: 'Write to Ann.' }), context.generated);
 * ```
 */
export function nodeContext<Exits extends string = string>(
  options: NodeContextOptions = {},
): TestNodeContext<Exits> {
  assertOptionNames<NodeContextOptions>(options, { ...TOOL_OPTIONS, replies: true });
  const { replies: scripted = [], ...rest } = options;
  const replies = [...scripted];
  const generated: GenerateOptions[] = [];
  return {
    ...toolContext(rest),
    generated,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has parsed the value
    generate: (async (request: GenerateOptions & { readonly output?: z.ZodType }) => {
      const { output, ...given } = request;
      generated.push(given);
      return await scriptedReply(replies, output);
    }) as NodeContext['generate'],
    exit: (name, patch) => ({ exit: name, ...(patch !== undefined && { patch }) }),
  };
}

async function scriptedReply(replies: unknown[], output: z.ZodType | undefined): Promise<unknown> {
  if (replies.length === 0) {
    throw new Error('generate: the test has no further reply; add one to `replies`');
  }
  const reply = replies.shift();
  if (reply instanceof Error) throw reply;
  return output === undefined ? reply : await output.parseAsync(reply);
}

function artifactsOf(values: ReadonlyMap<string, unknown>): CallArtifacts {
  const names = [...values.keys()];
  return {
    names,
    get: async (name: string, schema?: z.ZodType): Promise<unknown> => {
      if (!values.has(name)) {
        const known = names.length === 0 ? 'the test gave none' : `available: ${names.join(', ')}`;
        throw new ToolError(`unknown artifact ${JSON.stringify(name)}; ${known}`);
      }
      const value: unknown = JSON.parse(JSON.stringify(values.get(name) ?? null));
      if (schema === undefined) return value;
      const parsed = await schema.safeParseAsync(value);
      if (parsed.success) return parsed.data;
      throw new ToolError(`artifact "${name}" does not fit this tool: ${parsed.error.message}`);
    },
  };
}
