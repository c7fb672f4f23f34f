import type { GraphDefinition } from '../core/graph/definition.js';
import type { Json, JsonObject } from '../core/json.js';
import type { ToolContext } from '../tools/tool.js';

/** What a graph adds to an agent: the data to pin, and the code of its nodes. */
export interface GraphParts {
  readonly definition: GraphDefinition;
  /** The functions of `run`, `route`, and `each` nodes, by the node's name. */
  readonly functions: ReadonlyMap<string, NodeFunction>;
}

/** What a node's function receives: the state as recorded, and in an `each` the item. */
export interface NodeInput {
  readonly state: JsonObject;
  readonly item?: Json;
}

/** What the run records of a node: the exit of a `route`, a patch of the state, the value for one item. */
export interface NodeResult {
  readonly exit?: string;
  readonly patch?: JsonObject;
  readonly value?: Json;
}

/** The function of a node. Throws a `ToolError` for a fault that another attempt cannot change. */
export type NodeFunction = (given: NodeInput, context: ToolContext) => Promise<NodeResult>;
