/** One attempt at one model call: the unit that live deltas belong to. */
export interface LiveAttempt {
  /** Run id of the segment. */
  readonly segment: string;
  /** Temporal's id of the activity, unique within the segment. */
  readonly activity: string;
  /** From 1, as Temporal counts attempts. */
  readonly attempt: number;
  readonly turn: number;
  readonly step: number;
}

/** Returns a key for the model call of an attempt, unique within its run. */
export function callKey({ segment, activity }: Pick<LiveAttempt, 'segment' | 'activity'>): string {
  return `${segment}/${activity}`;
}

export function isSameAttempt(one: LiveAttempt, other: LiveAttempt): boolean {
  return callKey(one) === callKey(other) && one.attempt === other.attempt;
}

/**
 * Whether `other` supersedes `one`: a later attempt of the same call, or a later call of the segment.
 * Temporal numbers activities in the order in which they are scheduled.
 */
export function isBefore(one: LiveAttempt, other: LiveAttempt): boolean {
  if (one.segment !== other.segment) return false;
  const distance = Number(other.activity) - Number(one.activity);
  return distance > 0 || (distance === 0 && one.attempt < other.attempt);
}
