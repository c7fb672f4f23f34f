import { noReason } from '../text/refusal-words.js';
import type { ConfirmedPlan } from '../state/state.js';
import { type JsonObject, canonicalJson, isObject, parseJson } from '../text/json.js';
import { shorten, escapeJson, headOf, printable, show } from '../text/text.js';
import { exampleOf, missingNeed } from './chosen-actions.js';
import {
  EMPTY_PLAN,
  type Plan,
  type PlannedAction,
  needsOf,
  openRefs,
  planDigest,
  planIn,
  planValue,
  withoutActions,
} from './plan.js';

/** How a person answers a plan. */
type PlanAnswer =
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

/**
 * Returns the answers that `readPlanAnswer` understands, for error messages. `actions`: those of the
 * plan; null if they are not shown. A plan with one action has no part to choose.
 */
export function planWords(actions: readonly PlannedAction[] | null): string {
  const harmless = actions === null ? null : harmlessActions(actions).length;
  const isPart = harmless === null || (harmless > 0 && harmless < (actions?.length ?? 0));
  const some =
    actions?.length === 1
      ? ''
      : `${isPart ? '"some" for all that needs no approval, ' : ''}"${exampleText(actions)}" with all dependencies, `;
  return `expected "yes", "no" for nothing at all, ${some}or "edit …" with the change`;
}

function exampleText(actions: readonly PlannedAction[] | null): string {
  return someText(actions === null ? ['a1', 'a3'] : exampleOf(actions));
}

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
  const read = answerOrFault(text, actions);
  return 'as' in read ? read : null;
}

/** Returns what is wrong with an answer to a plan; null if it is clear, or if nothing is known. */
export function planAnswerFault(text: string, actions: readonly PlannedAction[]): string | null {
  const read = answerOrFault(text, actions);
  return 'as' in read ? null : read.fault;
}

/** Why an answer is unclear; null if it is not known what was meant. */
interface AnswerFault {
  readonly fault: string | null;
}

function answerOrFault(text: string, actions: readonly PlannedAction[]): PlanAnswer | AnswerFault {
  const ids = actions.map(({ id }) => id);
  const yesOrNo = readYesOrNo(text);
  if (yesOrNo !== null) return { as: yesOrNo };
  if (NOTHING.includes(wordOf(text))) return { as: 'no' };
  if (HARMLESS.includes(wordOf(text))) return withoutAsking(actions) ?? { fault: null };
  const given = text.trim();
  const [edit] = EDIT.exec(given) ?? [];
  const change = edit === undefined ? '' : afterColon(given.slice(edit.length));
  if (change !== '') return { as: 'edit', change };
  if (edit !== undefined) return { fault: `"${edit}" needs the change after it` };
  const [selection = '', allBut] = SELECTION.exec(given) ?? [];
  const list = afterColon(given.slice(selection.length)).replace(/\.$/, '');
  const named = wordsIn(list);
  const unknown = [...named].filter((id) => !ids.includes(id));
  if (named.size === 0 || unknown.length > 0) {
    const names = unknown.filter((word) => /^[a-z]{1,8}\d{1,4}$/i.test(word)).map((id) => show(id));
    const [first] = noReason(text) === '' ? names : [];
    return { fault: first === undefined ? null : `the plan has no action ${first}` };
  }
  const chosen = ids.filter((id) => named.has(id) !== (allBut !== undefined));
  const lack = allBut === undefined ? missingNeed(actions, chosen) : null;
  return lack === null ? { as: 'some', ids: chosen } : { fault: lack };
}

/** What a person decides about a plan, as a reader sees it. */
type PlanDecision =
  | { readonly as: 'approve' | 'deny' | 'edit' }
  | { readonly as: 'some'; readonly actions: readonly string[] };

/** Returns the decision that an answer to a plan makes; null if the answer is unclear. */
export function readPlanDecision(
  text: string,
  actions: readonly PlannedAction[],
): PlanDecision | null {
  const answer = readPlanAnswer(text, actions);
  if (answer === null) return null;
  if (answer.as === 'some') return { as: 'some', actions: answer.ids };
  return { as: DECISIONS[answer.as] };
}

const DECISIONS = { yes: 'approve', no: 'deny', edit: 'edit' } as const;

/**
 * Returns what a `confirm` node expects if the answer is something else; null if it is clear. `json`:
 * the arguments of its call.
 */
export function unclearAnswer(json: string, text: string): string | null {
  const planned = shownActions(json);
  if (planned === null) {
    if (readYesOrNo(text) !== null) return null;
    return `expected "yes" or "no", got ${show(text)}${noReason(text)}`;
  }
  const read = answerOrFault(text, planned);
  if ('as' in read) return null;
  const fault = read.fault === null ? noReason(text) : `: ${read.fault}`;
  return `${planWords(planned)}, got ${show(text)}${fault}; the actions are ${planned.map(({ id }) => id).join(', ')}`;
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
function afterEarlierNo(plan: Plan, text: string): Plan | null {
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

/**
 * Maximum characters of one action's arguments that are shown. The request's `arguments` has all of
 * them.
 */
const MAX_ARGUMENTS = 600;
/** Maximum characters of an action in a brief form of the plan. */
const MAX_BRIEF = 70;
/** Characters of all actions together. */
const MAX_CHARACTERS = 24_000;

/**
 * Returns a plan as text for the person who decides: each action with its description and
 * arguments, a mark on those that need approval, and the effect of each possible answer. It is
 * generated from the recorded actions and contains no model text.
 */
export function showPlan(plan: Plan): string {
  const { actions } = plan;
  // Actions that need approval are always shown; the others as far as there is room.
  const texts = actions.map((action) => ({ text: shownAction(action), asks: action.asks }));
  let left = MAX_CHARACTERS;
  for (const { text, asks } of texts) if (asks !== undefined) left -= text.length;
  const lines = texts.flatMap(({ text, asks }) => {
    if (asks !== undefined) return [text];
    left -= text.length;
    return left < 0 ? [] : [text];
  });
  const cut = actions.length - lines.length;
  return [
    title(actions.length),
    ...lines,
    ...(cut > 0
      ? [`… and ${cut} more that need no approval; see \`arguments\` of the request`]
      : []),
    '',
    // In-flight requests are bound to this text, so it never changes.
    ...answersTo(actions),
  ].join('\n');
}

function title(actions: number): string {
  return actions === 1 ? 'The plan has 1 action:' : `The plan has ${actions} actions:`;
}

/** Returns a plan as one line: how many actions it has, and how many of them need approval. */
export function planTitle(actions: readonly Pick<PlannedAction, 'asks'>[]): string {
  const asking = actions.filter(({ asks }) => asks !== undefined).length;
  const all = title(actions.length).slice(0, -1);
  if (actions.length === 1) {
    return asking === 0 ? `${all}, which needs no approval` : `${all}, which needs approval (!)`;
  }
  if (asking === 0) return `${all}, and none needs approval`;
  return `${all}, and ${asking} of them need${asking === 1 ? 's' : ''} approval (!)`;
}

/**
 * Returns a plan in at most `most` characters: a line for each action as far as they fit, those that
 * need approval first, and how many are left out.
 */
export function briefPlan(actions: readonly PlannedAction[], most: number): string {
  const head = `${planTitle(actions)}:`;
  let left = most - head.length - 80;
  const kept = new Set<PlannedAction>();
  for (const isAsking of [true, false]) {
    for (const action of actions.filter(({ asks }) => (asks !== undefined) === isAsking)) {
      left -= briefAction(action).length + 1;
      if (left >= 0) kept.add(action);
    }
  }
  const omitted = actions.length - kept.size;
  return [
    head,
    ...actions.filter((action) => kept.has(action)).map((action) => briefAction(action)),
    ...(omitted === 0 ? [] : [`… and ${omitted} more; the request shows all of them`]),
  ].join('\n');
}

function briefAction({ id, tool, shown, asks }: PlannedAction): string {
  const what = printable(shown ?? tool).replaceAll(/[\n\t]/g, ' ');
  const text = `${asks === undefined ? ' ' : '!'} ${id}  ${what}`;
  return shorten(text, MAX_BRIEF);
}

/** Returns the text that a graph puts before a plan of so many actions; empty if there is none. */
export function planIntroduction(question: string, actions: number): string {
  const at = `\n${question}`.lastIndexOf(`\n${title(actions)}\n`);
  return at < 0 ? '' : question.slice(0, at).trim();
}

function shownAction(action: PlannedAction): string {
  const { id, tool, arguments: given, parsed, shown, asks } = action;
  const needs = needsOf(action);
  return [
    `${asks === undefined ? ' ' : '!'} ${id}  ${printable(shown ?? tool)}`,
    `     ${printable(tool)} ${shownJson(canonicalJson(given))}`,
    ...(parsed === undefined ? [] : [`     the tool gets ${shownJson(parsed.arguments)}`]),
    ...(needs.length > 0 ? [`     after ${needs.join(', ')}`] : []),
    ...(asks === undefined ? [] : [`     needs ${approvalOf(asks)}: ${printable(asks.why)}`]),
  ].join('\n');
}

function shownJson(text: string): string {
  const json = escapeJson(text);
  if (json.length <= MAX_ARGUMENTS) return json;
  const head = headOf(json, MAX_ARGUMENTS);
  return `${head}… [cut: ${json.length} characters]`;
}

function approvalOf({ deciders }: NonNullable<PlannedAction['asks']>): string {
  return deciders === undefined
    ? 'approval'
    : 'separate approval by the deciders that the rules name';
}

/** Returns the answers to a plan that make a difference, as plain words, each with its effect. */
export function planAnswers({ actions }: Pick<Plan, 'actions'>): readonly string[] {
  const answers = answersTo(actions);
  return actions.length === 1 ? answers.filter((line) => !line.startsWith('some')) : answers;
}

function answersTo(actions: readonly PlannedAction[]): readonly string[] {
  const harmless = harmlessActions(actions);
  const gone = actions.map(({ id }) => id).filter((id) => !harmless.includes(id));
  const hasSome = gone.length > 0 && harmless.length > 0;
  return [
    'yes      executes all actions',
    ...(hasSome ? [`some     omits ${gone.join(', ')} and executes the other actions`] : []),
    `some ${actions[0]?.id ?? 'a1'}  executes only the actions that you name`,
    'no       executes nothing (as does: nothing)',
    'edit …   requests a new plan with your change',
  ];
}
