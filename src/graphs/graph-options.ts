import { z } from 'zod';
import type { Agent, AgentOptions } from '../agents/agent.js';
import type { TypedInput } from '../core/definition/output-type.js';
import type { GraphParts } from '../agents/graph-parts.js';
import {
  checkOptions,
  expected,
  anyFunction,
  type OptionSchemas,
} from '../validation/check-options.js';
import type { GraphKinds, NodeSpec } from './node-spec.js';
import type { GraphFieldOf, GraphPatchOf, GraphStateOf } from './state-shape.js';

/** The options that a graph passes to its agent. Most of them affect only `decide` nodes. */
export type GraphAgentOptions = Pick<
  AgentOptions,
  'decide' | 'description' | 'limits' | 'mcp' | 'model' | 'onLimit' | 'rules' | 'settings' | 'tools'
>;

/** What an author passes to `defineGraph`. */
export interface GraphOptions<
  Shape extends z.ZodObject = z.ZodObject,
  Nodes extends Readonly<Record<string, NodeSpec>> = Readonly<Record<string, NodeSpec>>,
> extends GraphAgentOptions {
  /** As for agents; graphs and agents share one namespace. */
  readonly name: string;
  /** The state. A field with a default starts with it; every other field starts without a value. */
  readonly state: Shape;
  nodes(kinds: GraphKinds<Shape>): Nodes;
  /** The system message of the `decide` nodes. */
  readonly instructions?: AgentOptions['instructions'];
  /** The field that receives the text of the turn's messages. */
  readonly messageTo?: GraphFieldOf<Shape>;
  /**
   * The field that receives the last messages before the turn, as `{ role, text }`, oldest first.
   */
  readonly historyTo?: { readonly field: GraphFieldOf<Shape>; readonly last: number };
  /**
   * The field that is the outcome's `answer`, and the assistant's message in the conversation.
   * Default: the answer is the state as JSON, and joins no conversation.
   */
  readonly answerFrom?: GraphFieldOf<Shape>;
  /**
   * The field that is `true` at the end of a turn whose messages the graph has refused, such as a
   * request that a guard turned down. The transcript keeps them, with the answer; no later prompt
   * and no `historyTo` has them. Each turn resets the field.
   */
  readonly refusedFrom?: GraphFieldOf<Shape>;
  /** The field that receives `{ node, type, message }` when a node leaves through `failed`. */
  readonly errorTo?: GraphFieldOf<Shape>;
  /** The fields that each turn resets; the others keep their values. */
  readonly perTurn?: readonly GraphFieldOf<Shape>[];
}

/** A graph made by `defineGraph`. It is an agent, and can be used wherever an agent can. */
export interface Graph<State = Readonly<Record<string, unknown>>, Input = unknown>
  extends Agent<State>, TypedInput<Input> {
  readonly graph: GraphParts;
}

/** The type of a graph's `input`: any of the state's fields. */
export type GraphInput<Given extends Graph> =
  Given extends Graph<unknown, infer Input> ? Input : never;

/** The graph of a state. */
export type GraphOf<Shape extends z.ZodObject> = Graph<
  Partial<GraphStateOf<Shape>>,
  GraphPatchOf<Shape>
>;

const MAX_HISTORY = 1_000;

const graphOptions = z.strictObject({
  name: z.string().regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."'),
  state: expected('a state such as z.object({…})', (value) => value instanceof z.ZodObject),
  nodes: anyFunction,
  instructions: z.unknown().optional(),
  messageTo: z.string().optional(),
  historyTo: z
    .strictObject({ field: z.string(), last: z.int().min(1).max(MAX_HISTORY) })
    .optional(),
  answerFrom: z.string().optional(),
  refusedFrom: z.string().optional(),
  errorTo: z.string().optional(),
  perTurn: z.array(z.string()).optional(),
  // `defineAgent` checks these.
  decide: z.unknown().optional(),
  description: z.unknown().optional(),
  limits: z.unknown().optional(),
  mcp: z.unknown().optional(),
  model: z.unknown().optional(),
  onLimit: z.unknown().optional(),
  rules: z.unknown().optional(),
  settings: z.unknown().optional(),
  tools: z.unknown().optional(),
} satisfies OptionSchemas<GraphOptions>);

/** Throws an `InputError` with a line for each fault of a graph's options. */
export function assertGraphOptions(options: object): void {
  checkOptions('graph', { schema: graphOptions, options });
}
