import { headOf } from '../text/whole-text.js';
import { canonicalJson } from '../json.js';
import { escapeJson, printable } from '../text/hidden.js';
import { harmlessActions } from './confirm-plan.js';
import { needsOf, type Plan, type PlannedAction } from './plan.js';

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
    ...planAnswers(plan),
  ].join('\n');
}

function title(actions: number): string {
  return actions === 1 ? 'The plan has 1 action:' : `The plan has ${actions} actions:`;
}

/** Returns a plan as one line: how many actions it has, and how many of them need approval. */
export function planTitle(actions: readonly Pick<PlannedAction, 'asks'>[]): string {
  const asking = actions.filter(({ asks }) => asks !== undefined).length;
  const all = title(actions.length).slice(0, -1);
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
  return text.length <= MAX_BRIEF ? text : `${headOf(text, MAX_BRIEF - 1)}…`;
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

/** Returns the answers to a plan, as plain words, each with its effect. */
export function planAnswers({ actions }: Pick<Plan, 'actions'>): readonly string[] {
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
