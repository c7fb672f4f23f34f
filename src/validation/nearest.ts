import { distance } from 'fastest-levenshtein';

/** Names are compared up to this length: the time grows with the product of both lengths. */
const MAX_CHARACTERS = 100;

/** Returns the candidates by edit distance to `name`, nearest first, ties in alphabetical order. */
export function nearestFirst(name: string, candidates: readonly string[]): string[] {
  return candidates
    .map((candidate) => ({ candidate, edits: editDistance(name, candidate) }))
    .toSorted((a, b) => a.edits - b.edits || (a.candidate < b.candidate ? -1 : 1))
    .map(({ candidate }) => candidate);
}

/**
 * Returns the candidate that `name` may be a misspelling of: at most every third character differs.
 */
export function likelyMeant(name: string, candidates: readonly string[]): string | undefined {
  const [nearest] = nearestFirst(name, candidates);
  if (nearest === undefined) return undefined;
  return editDistance(name, nearest) * 3 <= Math.max(name.length, nearest.length)
    ? nearest
    : undefined;
}

function editDistance(from: string, to: string): number {
  const [a, b] = [from, to].map((text) => text.slice(0, MAX_CHARACTERS).toLowerCase());
  return distance(a ?? '', b ?? '');
}
