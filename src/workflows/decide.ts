import { currentUpdateInfo } from '@temporalio/workflow';
import { checkBy, decidedBefore, type Decision } from '../core/decisions.js';
import { isObject } from '../core/json.js';
import { apply } from '../core/loop.js';
import type { Claim } from './messages.js';
import type { Session } from './run-context.js';

/** The update under way: its id, and the decision that it made before, if it was sent again. */
export interface Deciding {
  readonly id: string;
  readonly before: Decision | undefined;
}

/** Call it before anything is awaited. */
export function deciding(session: Session): Deciding {
  const id = currentUpdateInfo()?.id ?? '';
  return { id, before: decidedBefore(session.state.decisions, id) };
}

/** @returns what is wrong with the claim in an update's argument, or null */
export function claimProblem(given: unknown): string | null {
  return isObject(given) ? checkBy(given['by']) : null;
}

/** Puts on record who decided what. */
export function recordDecision(
  session: Session,
  { id }: Deciding,
  decision: Pick<Decision, 'what' | 'turn' | 'call' | 'as'> & { readonly claim: Claim | undefined },
): void {
  const { claim, ...made } = decision;
  const by = claim?.by;
  apply(session, {
    type: 'decided',
    decision: { ...made, id, at: Date.now(), ...(by !== undefined && { by }) },
  });
}
