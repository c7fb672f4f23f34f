import { currentUpdateInfo } from '@temporalio/workflow';
import type { ControlDecision } from '../../core/decisions.js';
import { checkBy } from '../../core/input/check-tags.js';
import { isObject } from '../../core/json.js';
import { recordNow, type RunContext } from '../run-context.js';

/** Returns the id of the update that is being handled. */
export function updateId(): string {
  return currentUpdateInfo()?.id ?? '';
}

/** Records a decision. The same update sent again has no second effect. */
export function decide<T>(run: RunContext, name: ControlDecision, input: unknown, answer: T): T {
  const { paused } = run.state;
  recordNow(run, { type: 'update', name, id: updateId(), input });
  if (run.state.paused !== paused) run.publishStatus();
  return answer;
}

/** Returns what is wrong with the claim in an update's argument, or null. */
export function claimProblem(input: unknown): string | null {
  return isObject(input) ? checkBy(input['by']) : null;
}
