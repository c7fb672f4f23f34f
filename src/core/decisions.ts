import { show } from './text/format-value.js';

/** What a person decided about a run, as its update is named. */
export type DecisionName = 'resolve' | 'cancelTurn' | 'pause' | 'resume' | 'setLimits' | 'close';

/** A decision that the run has carried out. */
export interface Decision {
  readonly what: DecisionName;
  /** The id of the update: an update sent again under it, in a later segment too, has no second effect. */
  readonly id: string;
  /** Unix time in ms, by the workflow's clock. */
  readonly at: number;
  /** Who decided: a claim of the caller, which perdure records and does not verify. */
  readonly by?: string;
  /** Of `cancelTurn`: the number of the turn that was canceled. */
  readonly turn?: number;
  /** Of `resolve`: the id of the call, and what was decided about it. */
  readonly call?: string;
  readonly as?: string;
}

/** Decisions that a run remembers, the newest. */
export const REMEMBERED_DECISIONS = 20;
const MAX_BY_CHARACTERS = 200;

/** @returns what is wrong with a claim of who decided, or null */
export function checkBy(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value !== '' && value.length <= MAX_BY_CHARACTERS) return null;
  return `by: expected a string of 1–${MAX_BY_CHARACTERS} characters, got ${show(value)}`;
}

/** The decision that an update of this id has made before; undefined when it made none. */
export function decidedBefore(
  decisions: readonly Decision[] | undefined,
  id: string,
): Decision | undefined {
  return decisions?.find((decision) => decision.id === id);
}

/** The list with one more decision; the oldest leave it. */
export function withDecision(
  decisions: readonly Decision[] | undefined,
  decision: Decision,
): readonly Decision[] {
  return [...(decisions ?? []), decision].slice(-REMEMBERED_DECISIONS);
}
