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
  const [a = '', b = ''] = [from, to].map((text) => text.slice(0, MAX_CHARACTERS).toLowerCase());
  return isSwapped(a, b) ? 1 : distance(a, b);
}

/** Whether two neighboring characters are in the other order: one mistake of a typist, not two. */
function isSwapped(a: string, b: string): boolean {
  if (a === b || a.length !== b.length) return false;
  let at = 0;
  while (a[at] === b[at]) at += 1;
  return a.slice(0, at) + (a[at + 1] ?? '') + (a[at] ?? '') + a.slice(at + 2) === b;
}
