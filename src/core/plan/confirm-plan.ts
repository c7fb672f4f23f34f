import { needsOf, withoutActions, type Plan, type PlannedAction } from './plan.js';

/** How a person answers a plan. */
export type PlanAnswer =
  | { readonly as: 'yes' }
  /** All but the actions that need approval, and those that depend on them. */
  | { readonly as: 'no' }
  /** Only these actions. */
  | { readonly as: 'some'; readonly ids: readonly string[] }
  /** No actions. */
  | { readonly as: 'nothing' }
  /** No actions yet: the planner makes a new plan from this request. */
  | { readonly as: 'edit'; readonly change: string };

const YES: readonly string[] = ['yes', 'y', 'confirm', 'ok', 'proceed', 'approve'];
const NO: readonly string[] = ['no', 'n', 'cancel', 'abort'];
const NOTHING: readonly string[] = ['nothing', 'none', 'stop'];

// Any length of text reaches these expressions inside a workflow, so none of them may backtrack.
const EDIT = /^(?:edit|change)\b/i;
const SELECTION = /^(?:(all but|without|except)|some|only|yes,?(?: to)?(?: only)?)/i;

/** The answers that `readPlanAnswer` understands, for error messages. */
export const PLAN_WORDS =
  'expected "yes", "no", "some a1 a3" with all dependencies, "nothing", or "edit …" with the change';

/**
 * Reads yes or no; null for any other text. Surrounding whitespace, case, and a final period are
 * ignored.
 */
export function readYesOrNo(text: string): 'yes' | 'no' | null {
  const word = wordOf(text);
  if (YES.includes(word)) return 'yes';
  return NO.includes(word) ? 'no' : null;
}

/**
 * Reads the answer to a plan; null if it is unclear, so that the person is asked again. `some a1
 * a3`, `only a1, a3`, `all but a2`, or ids alone select actions; a selection must include what its
 * actions depend on. `actions`: those of the plan.
 */
export function readPlanAnswer(
  text: string,
  actions: readonly Pick<PlannedAction, 'id' | 'arguments' | 'after'>[],
): PlanAnswer | null {
  const ids = actions.map(({ id }) => id);
  const yesOrNo = readYesOrNo(text);
  if (yesOrNo !== null) return { as: yesOrNo };
  if (NOTHING.includes(wordOf(text))) return { as: 'nothing' };
  const given = text.trim();
  const [edit] = EDIT.exec(given) ?? [];
  const change = edit === undefined ? '' : afterColon(given.slice(edit.length));
  if (change !== '') return { as: 'edit', change };
  const [selection = '', allBut] = SELECTION.exec(given) ?? [];
  const list = afterColon(given.slice(selection.length)).replace(/\.$/, '');
  const named = wordsIn(list);
  if (named.size === 0 || ![...named].every((id) => ids.includes(id))) return null;
  const chosen = ids.filter((id) => named.has(id) !== (allBut !== undefined));
  const lacks = actions.some(
    (action) =>
      chosen.includes(action.id) &&
      needsOf(action).some((id) => ids.includes(id) && !chosen.includes(id)),
  );
  return lacks && allBut === undefined ? null : { as: 'some', ids: chosen };
}

/** Returns what follows a word and its colon, if it has one. */
function afterColon(text: string): string {
  return text.trimStart().replace(/^:/, '').trim();
}

/** Returns the words of a list; an `and` between two of them is not one. */
function wordsIn(list: string): ReadonlySet<string> {
  const words = list.split(/[\s,]+/).filter((word) => word !== '');
  const isJoint = (word: string, at: number): boolean =>
    at > 0 && at < words.length - 1 && word.toLowerCase() === 'and';
  return new Set(words.filter((word, at) => !isJoint(word, at)));
}

function wordOf(text: string): string {
  return text.trim().toLowerCase().replace(/[.!]$/, '');
}

/**
 * Returns the plan with the actions that an answer keeps; null for an edit, which needs a new plan.
 */
export function planAfter(plan: Plan, answer: PlanAnswer): Plan | null {
  const ids = plan.actions.map(({ id }) => id);
  switch (answer.as) {
    case 'yes':
      return plan;
    case 'no': {
      const asking = plan.actions.filter(({ asks }) => asks !== undefined).map(({ id }) => id);
      // If no single action needs approval, the answer refuses all of them.
      return withoutActions(plan, new Set(asking.length === 0 ? ids : asking));
    }
    case 'some':
      return withoutActions(plan, new Set(ids.filter((id) => !answer.ids.includes(id))));
    case 'nothing':
      return withoutActions(plan, new Set(ids));
    case 'edit':
      return null;
  }
}
