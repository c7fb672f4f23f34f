import type { ConfirmedPlan } from '../graph/graph-state.js';
import type { JsonObject } from '../json.js';
import { planAfter, readPlanAnswer } from './confirm-plan.js';
import { planDigest, planIn, planValue } from './plan.js';
import { refsIn } from './references.js';

/** How a `confirm` node with a plan ends. */
interface PlanEnd {
  readonly exit: 'yes' | 'no' | 'some' | 'edit' | 'expired';
  readonly patch?: JsonObject;
  readonly confirmed?: ConfirmedPlan;
  readonly wish?: string;
}

/**
 * Returns how a `confirm` node ends by a person's answer to its plan. What is left of the plan is saved,
 * and confirmed as it was shown. An answer that says nothing clear leaves out all that needs a yes.
 */
export function planEnd(
  values: JsonObject,
  field: string,
  { text, expired }: { readonly text: string; readonly expired: boolean },
): PlanEnd {
  const plan = planIn(values, field);
  const ids = plan.actions.map(({ id }) => id);
  if (expired) {
    const left = { ...plan, actions: [], asks: false, unanswered: ids };
    return { exit: 'expired', patch: { [field]: planValue(left) } };
  }
  const answer = readPlanAnswer(text, plan.actions) ?? { as: 'no' };
  if (answer.as === 'edit') return { exit: 'edit', wish: answer.wish };
  const left = planAfter(plan, answer) ?? plan;
  // Where the rules name who decides, each call asks those people itself.
  const complete = left.actions.filter(
    ({ arguments: given, asks }) => refsIn(given).length === 0 && asks?.deciders === undefined,
  );
  return {
    exit: answer.as === 'nothing' ? 'no' : answer.as,
    patch: { [field]: planValue(left) },
    confirmed: { digest: planDigest(left), actions: complete.map(({ id }) => id) },
  };
}
