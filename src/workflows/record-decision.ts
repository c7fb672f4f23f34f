import { currentUpdateInfo } from '@temporalio/workflow';
import { checkBy, decidedBefore, type Decision } from '../core/decisions.js';
import { isObject } from '../core/json.js';
import { apply } from '../core/loop.js';
import type { ActorClaim } from './messages.js';
import type { RunContext } from './run-context.js';

/** The update that is being handled. */
export interface CurrentUpdate {
  readonly id: string;
  /** The decision that the update made when it was sent before; undefined if it is new. */
  readonly before: Decision | undefined;
}

/** Returns the update that is being handled. Has to be called before anything is awaited. */
export function currentUpdate(run: RunContext): CurrentUpdate {
  const id = currentUpdateInfo()?.id ?? '';
  return { id, before: decidedBefore(run.state.decisions, id) };
}

/** Returns what is wrong with the claim in an update's argument, or null. */
export function claimProblem(given: unknown): string | null {
  return isObject(given) ? checkBy(given['by']) : null;
}

/** Records who decided what, under the id of the update. */
export function recordDecision(
  run: RunContext,
  { id }: CurrentUpdate,
  decision: Pick<Decision, 'what' | 'turn' | 'call' | 'as'> & {
    readonly claim: ActorClaim | undefined;
  },
): void {
  const { claim, ...made } = decision;
  const by = claim?.by;
  apply(run, {
    type: 'decided',
    decision: { ...made, id, at: Date.now(), ...(by !== undefined && { by }) },
  });
}
