const FIRST_MS = 500;
const GROWTH = 1.5;
/** A server hands its tasks to workers in turn, so the one that is looked for may be reached late. */
const SOON_MS = 5_000;
const SOON_ATTEMPTS = 60;
const LONGEST_MS = 30_000;

/**
 * Milliseconds before a probe looks on the next worker for what this one lacks. `attempt`: from 1.
 * The retries are Temporal's own and leave no events.
 */
export function searchDelayMs(attempt: number): number {
  const longest = attempt <= SOON_ATTEMPTS ? SOON_MS : LONGEST_MS;
  return Math.round(Math.min(FIRST_MS * GROWTH ** Math.min(attempt - 1, 20), longest));
}
