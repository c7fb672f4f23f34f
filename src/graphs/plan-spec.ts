import type { z } from 'zod';
import type { Duration } from '../core/text/duration.js';
import type { ActionResult, Plan } from '../core/plan/plan.js';
import type { GraphFieldHolding, GraphFieldOf, GraphFieldTaking } from './state-shape.js';

/** Options of a `plan` node. */
export interface PlanNodeOptions<Shape extends z.ZodObject> {
  /** The field that receives the plan; only this node may fill it. Its type is `planState.plan`. */
  readonly save: GraphFieldHolding<Shape, Plan>;
  /** The field that receives the model's text if there is nothing to do. */
  readonly answer?: GraphFieldTaking<Shape, string>;
  /**
   * `schema` (default): the whole plan in one reply, with all tools in the prompt. `catalog`: the
   * model looks tools up, and its calls are noted one by one; reads are executed.
   */
  readonly planning?: 'schema' | 'catalog';
  /** Default 200, at most 500. */
  readonly maxActions?: number;
  /** The maximum number of plans before the node fails; default 5. */
  readonly attempts?: number;
}

/** Options of an `execute` node. */
export interface ExecuteNodeOptions<Shape extends z.ZodObject> {
  /** The field that contains the plan. */
  readonly plan: GraphFieldOf<Shape>;
  /** The field that receives the results by the actions' ids. Its type is `planState.results`. */
  readonly save: GraphFieldHolding<Shape, Readonly<Record<string, ActionResult>>>;
  /** The maximum number of actions at the same time, 1 to 50; default 5. */
  readonly atOnce?: number;
  /** How long one action may take. A duration: ms, or words such as '30 seconds', the default. */
  readonly timeout?: Duration;
  /**
   * What happens to an action if one that it needs has failed: it is skipped with a reason (`skip`,
   * default), no further action of the plan starts (`fail`), or each of its references to that
   * result, also to a part of it, is null (`null`). An action that needs approval is never executed after a failure.
   */
  readonly onFailedDependency?: 'skip' | 'fail' | 'null';
}
