import { likelyMeant, nearestFirst } from './check-options.js';

/** The most names that a hint lists. */
const SHOWN = 3;

/**
 * Returns which of the known names an unknown one may be a misspelling of, nearest first, or else some that
 * exist: `nearest: desk`, `it has: desk, essay, …`, or `it has none`.
 */
export function namesHint(name: string, known: readonly string[]): string {
  if (known.length === 0) return 'it has none';
  const near = nearestFirst(name, known).filter((one) => likelyMeant(name, [one]) !== undefined);
  if (near.length > 0) return `nearest: ${near.slice(0, SHOWN).join(', ')}`;
  const more = known.length > SHOWN ? ', …' : '';
  return `it has: ${known.toSorted().slice(0, SHOWN).join(', ')}${more}`;
}
