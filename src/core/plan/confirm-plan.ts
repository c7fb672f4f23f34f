import { isObject, parseJson } from '../json.js';
import { EMPTY_PLAN, needsOf, withoutActions, type Plan, type PlannedAction } from './plan.js';

/** How a person answers a plan. */
export type PlanAnswer =
  | { readonly as: 'yes' }
  /** No actions. */
  | { readonly as: 'no' }
  /** Only these actions. */
  | { readonly as: 'some'; readonly ids: readonly string[] }
  /** No actions yet: the planner makes a new plan from this request. */
  | { readonly as: 'edit'; readonly change: string };

const YES: readonly string[] = ['yes', 'y', 'confirm', 'ok', 'proceed', 'approve'];
const NO: readonly string[] = ['no', 'n', 'cancel', 'abort', 'deny'];
const NOTHING: readonly string[] = ['nothing', 'none', 'stop'];
/** All but the actions that need approval, and those that depend on them. */
const HARMLESS: readonly string[] = ['some', 'without the destructive ones'];

// Any length of text reaches these expressions inside a workflow, so none of them may backtrack.
const EDIT = /^(?:edit|change)\b/i;
const SELECTION = /^(?:(all but|without|except)|some|only|yes,?(?: to)?(?: only)?)/i;

/** The answers that `readPlanAnswer` understands, for error messages. */
export const PLAN_WORDS =
  'expected "yes", "no" for nothing at all, "some" for all that needs no approval, ' +
  '"some a1 a3" with all dependencies, or "edit …" with the change';

/** Returns the actions of a plan as its request shows them; null if the call shows no plan. */
export function shownActions(json: string): readonly PlannedAction[] | null {
  const given = parseJson(json);
  const actions = isObject(given) ? given['actions'] : undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- code has made the arguments
  return Array.isArray(actions) ? (actions as readonly PlannedAction[]) : null;
}

/**
 * Returns the decision `some` as the words of an answer. `ids`: the chosen actions; if absent, all
 * that need no approval.
 */
export function someText(ids: readonly string[] | undefined): string {
  return ['some', ...(ids ?? [])].join(' ');
}

/** Returns the actions that need no approval and depend on none that does. */
export function harmlessActions(actions: readonly PlannedAction[]): readonly string[] {
  const asking = actions.filter(({ asks }) => asks !== undefined).map(({ id }) => id);
  return withoutActions({ ...EMPTY_PLAN, actions }, new Set(asking)).actions.map(({ id }) => id);
}

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
export function readPlanAnswer(text: string, actions: readonly PlannedAction[]): PlanAnswer | null {
  const ids = actions.map(({ id }) => id);
  const yesOrNo = readYesOrNo(text);
  if (yesOrNo !== null) return { as: yesOrNo };
  if (NOTHING.includes(wordOf(text))) return { as: 'no' };
  if (HARMLESS.includes(wordOf(text))) return withoutAsking(actions);
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

/** Unclear if no action needs approval, or if nothing would be left. */
function withoutAsking(actions: readonly PlannedAction[]): PlanAnswer | null {
  const ids = harmlessActions(actions);
  return ids.length === 0 || ids.length === actions.length ? null : { as: 'some', ids };
}

function wordOf(text: string): string {
  return text.trim().toLowerCase().replace(/[.!]$/, '');
}

/**
 * Returns what a no left of a plan before it refused everything: the actions that need no approval,
 * unless none does. Null for another answer. Nothing that is decided now has this meaning.
 */
export function afterEarlierNo(plan: Plan, text: string): Plan | null {
  if (readYesOrNo(text) !== 'no') return null;
  const asking = plan.actions.filter(({ asks }) => asks !== undefined).map(({ id }) => id);
  return asking.length === 0 ? null : withoutActions(plan, new Set(asking));
}

/**
 * Returns the plan with the actions that an answer keeps; null for an edit, which needs a new plan.
 */
export function planAfter(plan: Plan, answer: PlanAnswer): Plan | null {
  const ids = plan.actions.map(({ id }) => id);
  switch (answer.as) {
    case 'yes':
      return plan;
    case 'no':
      return withoutActions(plan, new Set(ids));
    case 'some':
      return withoutActions(plan, new Set(ids.filter((id) => !answer.ids.includes(id))));
    case 'edit':
      return null;
  }
}
