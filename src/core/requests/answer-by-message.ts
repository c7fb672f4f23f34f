import { currentNode } from '../graph/node-tool.js';
import { PLAN_WORDS, readPlanAnswer, readYesOrNo } from '../plan/confirm-plan.js';
import { planIn } from '../plan/plan.js';
import type { RunState } from '../state.js';
import { askingWork } from './open-requests.js';
import type { AskingWork } from '../work/work.js';

/**
 * Returns the open question of a `confirm` node, if a message may answer it. A message does not
 * prove its sender, so it never answers a question reserved for certain people.
 */
function questionOf(state: RunState): AskingWork | undefined {
  const node = currentNode(state);
  if (node?.kind !== 'confirm' || state.config.decisions?.mayDecide === true) return undefined;
  return askingWork(state).find(
    ({ request, proposal }) =>
      (request.kind === 'question' || request.kind === 'plan') &&
      (request.deciders ?? []).length === 0 &&
      proposal === undefined,
  );
}

/** Returns the work that this message answers; undefined if it answers none. */
export function answeredBy(state: RunState, text: string): AskingWork | undefined {
  const work = questionOf(state);
  return work !== undefined && isClear(state, text) ? work : undefined;
}

/** Returns why a message is refused while a plan awaits an answer, or null. */
export function unclearProblem(state: RunState, text: string): string | null {
  const work = questionOf(state);
  if (work?.request.kind !== 'plan' || isClear(state, text)) return null;
  return (
    `message: the run waits for an answer to its plan: ${PLAN_WORDS}; send one of them, or decide with ` +
    `request ${work.request.id}`
  );
}

function isClear(state: RunState, text: string): boolean {
  const node = currentNode(state);
  if (node?.kind !== 'confirm') return false;
  if (node.plan === undefined) return readYesOrNo(text) !== null;
  const { actions } = planIn(state.graph?.values ?? {}, node.plan);
  return readPlanAnswer(text, actions) !== null;
}
