import { currentNode } from '../graph/node-tool.js';
import { PLAN_WORDS, readPlanAnswer, readYesOrNo } from '../plan/confirm-plan.js';
import { planIn } from '../plan/plan.js';
import type { RunState } from '../state.js';
import { askingWork, type AskingWork } from './open-requests.js';

/**
 * Returns the question of a `confirm` node that a message can answer; undefined if there is none. A
 * message proves nothing about its sender, so it answers no question that only some people may decide.
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

/** Returns the work that waits for this message as its answer; undefined if the message is none. */
export function answeredBy(state: RunState, text: string): AskingWork | undefined {
  const work = questionOf(state);
  return work !== undefined && isClear(state, text) ? work : undefined;
}

/** Returns why a message is refused while a plan waits for an answer; null if it is not. */
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
