import type { z } from 'zod';
import type { GraphFieldOf } from './state-shape.js';

/** Options of a `plan` node. */
export interface PlanNodeOptions<Shape extends z.ZodObject> {
  /** The field that receives the plan; only this node may fill it. Its type is `planType`. */
  readonly save: GraphFieldOf<Shape>;
  /** The field that receives the model's text if there is nothing to do. */
  readonly answer?: GraphFieldOf<Shape>;
  /**
   * `schema` (default): the whole plan in one reply, with all tools in the prompt. `catalog`: the model
   * looks tools up, and its calls are noted one by one; reads are executed.
   */
  readonly planning?: 'schema' | 'catalog';
  /** Default 200, at most 500. */
  readonly maxActions?: number;
  /** Plans that the model may give before the node has failed; default 5. */
  readonly attempts?: number;
}

/** Options of an `execute` node. */
export interface ExecuteNodeOptions<Shape extends z.ZodObject> {
  /** The field that has the plan. */
  readonly plan: GraphFieldOf<Shape>;
  /** The field that receives the results by the actions' ids. Its type is `resultsType`. */
  readonly save: GraphFieldOf<Shape>;
  /** Actions at the same time, 1 to 50; default 5. */
  readonly atOnce?: number;
  /** Maximum duration of one action in ms; default 30 s. */
  readonly timeoutMs?: number;
  /**
   * What happens to an action if one that it needs has failed: it is left out with a reason (`skip`,
   * default), nothing further of the plan begins (`fail`), or it gets null as that result (`null`). What
   * needs a yes is never done behind a failure.
   */
  readonly onFailedDependency?: 'skip' | 'fail' | 'null';
}
