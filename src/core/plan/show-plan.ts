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
    actions.length === 1 ? 'The plan has 1 action:' : `The plan has ${actions.length} actions:`,
    ...lines,
    ...(cut > 0
      ? [`… and ${cut} more that need no approval; see \`arguments\` of the request`]
      : []),
    '',
    ...answers(plan),
  ].join('\n');
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

function answers({ actions }: Plan): readonly string[] {
  const harmless = harmlessActions(actions);
  const gone = actions.map(({ id }) => id).filter((id) => !harmless.includes(id));
  const hasSome = gone.length > 0 && harmless.length > 0;
  return [
    'yes      executes all actions',
    ...(hasSome ? [`some     omits ${gone.join(', ')} and executes the other actions`] : []),
    `some ${actions[0]?.id ?? 'a1'}  executes only the actions that you name`,
    'no       executes nothing',
    'edit …   requests a new plan with your change',
  ];
}
