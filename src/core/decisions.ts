/** The update by which a person decided about a run. */
export type ControlDecision =
  | 'resolve'
  | 'cancelTurn'
  | 'pause'
  | 'resume'
  | 'setLimits'
  | 'close'
  | 'revoke'
  | 'undo';

/** A decision that the run has carried out. */
export interface RecordedDecision {
  readonly what: ControlDecision;
  /**
   * The update's id. Sending the same update again has no second effect, even in a later segment.
   */
  readonly id: string;
  /** Unix time in ms, by the workflow's clock. */
  readonly at: number;
  /** Who decided: a claim of the caller, which perdure records and does not verify. */
  readonly by?: string;
  /** For `cancelTurn`: the number of the turn that was canceled. */
  readonly turn?: number;
  /** For `resolve`: the request's id and the decision; `expired` if no decision came in time. */
  readonly request?: string;
  readonly as?: string;
  /** For `resolve` and `undo`: the call's id. */
  readonly call?: string;
  /** Why a worker rejected the decision; the request stayed open. */
  readonly refused?: string;
}

/** Number of decisions that a run remembers. */
export const REMEMBERED_DECISIONS = 20;

/** Returns the earlier decision by an update with this id; undefined if there is none. */
export function decidedBefore(
  decisions: readonly RecordedDecision[] | undefined,
  id: string,
): RecordedDecision | undefined {
  return decisions?.find((decision) => decision.id === id);
}

/** The decisions in a run's state. */
interface Decided {
  readonly decisions?: readonly RecordedDecision[];
  readonly decisionsTotal?: number;
}

/** Returns the state with one more decision; the oldest are dropped from the list. */
export function withDecision<State extends Decided>(
  state: State,
  decision: RecordedDecision,
): State {
  return {
    ...state,
    decisions: [...(state.decisions ?? []), decision].slice(-REMEMBERED_DECISIONS),
    decisionsTotal: countDecisions(state) + 1,
  };
}

/** Returns the number of all decisions. States of older versions have only the list. */
export function countDecisions({
  decisions = [],
  decisionsTotal = decisions.length,
}: Decided): number {
  return decisionsTotal;
}
