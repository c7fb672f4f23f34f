/** One attempt at one model call: what pieces of a reply belong to while it comes. */
export interface LiveAttempt {
  /** Run id of the segment. */
  readonly segment: string;
  /** Temporal's id of the activity, unique in the segment. */
  readonly activity: string;
  /** From 1; as Temporal counts. */
  readonly attempt: number;
  readonly turn: number;
  readonly step: number;
}

/** Names the model call of an attempt, within its run. */
export function callOf({ segment, activity }: Pick<LiveAttempt, 'segment' | 'activity'>): string {
  return `${segment}/${activity}`;
}

export function isSameAttempt(one: LiveAttempt, other: LiveAttempt): boolean {
  return callOf(one) === callOf(other) && one.attempt === other.attempt;
}

/** Whether one is over because of the other; activities are numbered in the order of their beginning. */
export function isBefore(one: LiveAttempt, other: LiveAttempt): boolean {
  if (one.segment !== other.segment) return false;
  const ahead = Number(other.activity) - Number(one.activity);
  return ahead > 0 || (ahead === 0 && one.attempt < other.attempt);
}
