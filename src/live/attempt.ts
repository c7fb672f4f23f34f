/** One attempt at one model call: the unit that live deltas belong to. */
export interface LiveAttempt {
  /** Run id of the segment. */
  readonly segment: string;
  /** Temporal's id of the activity, unique within the segment. */
  readonly activity: string;
  /** Counted from 1, as by Temporal. */
  readonly attempt: number;
  readonly turn: number;
  readonly step: number;
}

/** Returns a key for the model call of an attempt, unique within its run. */
export function attemptKey({
  segment,
  activity,
}: Pick<LiveAttempt, 'segment' | 'activity'>): string {
  return `${segment}/${activity}`;
}

export function isSameAttempt(a: LiveAttempt, b: LiveAttempt): boolean {
  return attemptKey(a) === attemptKey(b) && a.attempt === b.attempt;
}

/**
 * Returns whether `b` supersedes `a`: it is a later attempt of the same call, or a later call of
 * the segment. Temporal numbers activities in the order in which they are scheduled.
 */
export function isBefore(a: LiveAttempt, b: LiveAttempt): boolean {
  if (a.segment !== b.segment) return false;
  const distance = Number(b.activity) - Number(a.activity);
  return distance > 0 || (distance === 0 && a.attempt < b.attempt);
}
