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
