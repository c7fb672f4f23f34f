import { type PlannedAction, needsOf } from './plan.js';

/** Returns the other actions of the plan that an action depends on, without the reads before the plan. */
function needsIn(actions: readonly PlannedAction[], action: PlannedAction): readonly string[] {
  return needsOf(action).filter((id) => actions.some((one) => one.id === id));
}

/** Returns which action of a selection needs one outside it; null if none does. */
export function missingNeed(
  actions: readonly PlannedAction[],
  chosen: readonly string[],
): string | null {
  const open = (action: PlannedAction): readonly string[] =>
    needsIn(actions, action).filter((id) => !chosen.includes(id));
  const found = actions.find((action) => chosen.includes(action.id) && open(action).length > 0);
  if (found === undefined) return null;
  return `${found.id} needs ${open(found).join(' and ')}: name both, or neither`;
}

/**
 * Returns an example of a selection that is accepted: the first action, and another one that needs no
 * more than it, unless the two are the whole plan.
 */
export function exampleOf(actions: readonly PlannedAction[]): readonly string[] {
  const [first, second, ...others] = actions;
  if (first === undefined) return [];
  if (second === undefined || others.length === 0) return [first.id];
  const added = [...others, second].find(
    (action) => missingNeed(actions, [first.id, action.id]) === null,
  );
  return [first.id, ...(added === undefined ? [] : [added.id])];
}
