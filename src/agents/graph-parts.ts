import type { z } from 'zod';
import type { AnswerContract } from './agent-output.js';
import type { GraphDefinition } from '../core/graph/definition.js';
import type { Json, JsonObject } from '../core/json.js';
import type { NodeContext } from '../tools/tool.js';

/** What makes an agent a graph: the data that a run pins, and the code that stays on the worker. */
export interface GraphParts {
  readonly definition: GraphDefinition;
  /** The type of the `input` that starts a turn: the fields that JSON can express. */
  readonly input: z.ZodObject;
  /** The functions of `run`, `route`, and `each` nodes, by node. */
  readonly functions: ReadonlyMap<string, NodeFunction>;
  /**
   * Returns why the functions cannot take the state of a run that has pinned another form of the
   * graph, or null. `pinned`: the fields of that form.
   */
  readonly stateMisfit?: (state: JsonObject, pinned: readonly string[]) => Promise<string | null>;
  /** The contracts that parse the replies of `decide` nodes with an `output`, by node. */
  readonly outputs: ReadonlyMap<string, AnswerContract>;
}

/**
 * What the worker calls at a node. It receives the state as recorded, and, in an `each`, the item.
 * It returns what the run records.
 */
export type NodeFunction = (
  given: { readonly state: JsonObject; readonly item?: Json },
  context: NodeContext,
) => Promise<NodeResult>;

/**
 * What a node's function returned, checked: an exit of a `route`, a patch, or the value of an
 * `each`.
 */
export interface NodeResult {
  readonly exit?: string;
  readonly patch?: JsonObject;
  readonly value?: Json;
}
