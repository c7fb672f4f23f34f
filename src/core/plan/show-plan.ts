import { canonicalJson } from '../json.js';
import { escapeJson, printable } from '../text/hidden.js';
import { needsOf, withoutActions, type Plan, type PlannedAction } from './plan.js';

/** Characters of one action's arguments. What is beyond is in the request's `arguments`. */
const MAX_ARGUMENTS = 600;
/** Characters of all actions together. */
const MAX_CHARACTERS = 24_000;

/**
 * Returns a whole plan for the person who decides about it: each action in the tool's words with every
 * argument, those that the rules ask about marked, and what each answer would do. Made by code from what
 * would be executed.
 */
export function showPlan(plan: Plan): string {
  const { actions } = plan;
  const lines: string[] = [];
  let left = MAX_CHARACTERS;
  for (const action of actions) {
    const text = shownAction(action);
    left -= text.length;
    if (left < 0) break;
    lines.push(text);
  }
  const cut = actions.length - lines.length;
  return [
    actions.length === 1 ? 'The plan has 1 action:' : `The plan has ${actions.length} actions:`,
    ...lines,
    ...(cut > 0 ? [`… and ${cut} more; the request's \`arguments\` have them all`] : []),
    '',
    ...answers(plan),
  ].join('\n');
}

function shownAction(action: PlannedAction): string {
  const { id, tool, arguments: given, shown, asks } = action;
  const json = escapeJson(canonicalJson(given));
  const cut = json.length > MAX_ARGUMENTS;
  const args = cut
    ? `${json.slice(0, MAX_ARGUMENTS).replace(/[\ud800-\udbff]$/, '')}… [cut: ${json.length} characters]`
    : json;
  const needs = needsOf(action);
  return [
    `${asks === undefined ? ' ' : '!'} ${id}  ${printable(shown ?? tool)}`,
    `     ${printable(tool)} ${args}`,
    ...(needs.length > 0 ? [`     after ${needs.join(', ')}`] : []),
    ...(asks === undefined ? [] : [`     needs a yes: ${printable(asks.why)}`]),
  ].join('\n');
}

function answers(plan: Plan): readonly string[] {
  const asking = plan.actions.filter(({ asks }) => asks !== undefined).map(({ id }) => id);
  const { actions, dropped = [] } = withoutActions(plan, new Set(asking));
  const gone = dropped.filter((id) => !plan.dropped?.includes(id));
  const rest = actions.length === 0 ? 'does nothing' : 'does the rest';
  return [
    'yes      does all of it',
    gone.length === 0
      ? 'no       does all of it, too: nothing here needs a yes'
      : `no       leaves out ${gone.join(', ')} and ${rest}`,
    `some ${plan.actions[0]?.id ?? 'a1'}  does only the actions that you name`,
    'nothing  does nothing',
    'edit …   says what to plan instead',
  ];
}
