import { z } from 'zod';
import { isObject } from '../core/json.js';
import type { ActionResult, Plan } from '../core/plan/plan.js';

/**
 * The type of a state's field that contains a plan. A `plan` node fills it.
 *
 * @example
 * ```ts
 * import { planType, resultsType } from 'perdure';
 * import { z } from 'zod';
 *
 * export const state = z.object({ plan: planType.optional(), results: resultsType.default({}) });
 * ```
 */
export const planType: z.ZodType<Plan, Plan> = z.custom<Plan>(
  (value) => isObject(value) && Array.isArray(value['actions']) && Array.isArray(value['done']),
  'expected a plan, as a plan node saves it',
);

/**
 * The type of a state's field that contains the results of a plan's actions, by their ids.
 *
 * @example
 * ```ts
 * import { planType, resultsType } from 'perdure';
 * import { z } from 'zod';
 *
 * export const state = z.object({ plan: planType.optional(), results: resultsType.default({}) });
 * ```
 */
export const resultsType: z.ZodType<
  Readonly<Record<string, ActionResult>>,
  Readonly<Record<string, ActionResult>>
> = z.record(
  z.string(),
  z.custom<ActionResult>((value) => isObject(value) && 'ok' in value),
);
