import { z } from 'zod';
import { isObject } from '../core/json.js';
import type { ActionResult, Plan } from '../core/plan/plan.js';

const plan: z.ZodType<Plan, Plan> = z.custom<Plan>(
  (value) => isObject(value) && Array.isArray(value['actions']) && Array.isArray(value['done']),
  'expected a plan, as a plan node saves it',
);

const results: z.ZodType<
  Readonly<Record<string, ActionResult>>,
  Readonly<Record<string, ActionResult>>
> = z.record(
  z.string(),
  z.custom<ActionResult>((value) => isObject(value) && 'ok' in value),
);

/**
 * The fields of a state that plans: `plan`, which a `plan` node fills, and `results`, the results of
 * its actions by their ids, which an `execute` node fills. Fields of another name take their types
 * from here: `todo: planState.plan`.
 *
 * @example
 * ```ts
 * import { planState } from 'perdure';
 * import { z } from 'zod';
 *
 * export const state = z.object({ ...planState, answer: z.string().optional() });
 * ```
 */
export const planState = { plan: plan.optional(), results: results.default({}) } as const;
