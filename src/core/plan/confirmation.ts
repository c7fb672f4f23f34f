import type { ConfirmedPlan } from '../graph/graph-state.js';
import type { JsonObject } from '../json.js';
import { afterEarlierNo, planAfter, readPlanAnswer } from './confirm-plan.js';
import { openRefs } from './references.js';
import { planDigest, planIn, planValue } from './plan.js';

/** How a `confirm` node with a plan ends. */
interface PlanEnd {
  readonly exit: 'yes' | 'no' | 'some' | 'edit' | 'expired';
  readonly patch?: JsonObject;
  readonly confirmed?: ConfirmedPlan;
  readonly change?: string;
}

/**
 * Returns how a `confirm` node ends with a person's answer to its plan. The remaining actions are
 * saved and count as confirmed in the form that was shown. An unclear answer counts as a no.
 * `earlier`: see `keepsEarlierMeaning`.
 */
export function planEnd(
  values: JsonObject,
  field: string,
  {
    text,
    expired,
    earlier = false,
  }: { readonly text: string; readonly expired: boolean; readonly earlier?: boolean },
): PlanEnd {
  const plan = planIn(values, field);
  const ids = plan.actions.map(({ id }) => id);
  if (expired) {
    const left = { ...plan, actions: [], asks: false, unanswered: ids };
    return { exit: 'expired', patch: { [field]: planValue(left) } };
  }
  const answer = readPlanAnswer(text, plan.actions) ?? { as: 'no' };
  if (answer.as === 'edit') return { exit: 'edit', change: answer.change };
  const left = (earlier && afterEarlierNo(plan, text)) || (planAfter(plan, answer) ?? plan);
  // If the rules name deciders for a call, those people approve it in a separate request.
  // A call with open references is shown without its arguments, so its approval comes later.
  const complete = left.actions.filter(
    (action) => openRefs(action).length === 0 && action.asks?.deciders === undefined,
  );
  return {
    exit: answer.as,
    patch: { [field]: planValue(left) },
    confirmed: { digest: planDigest(left), actions: complete.map(({ id }) => id) },
  };
}
