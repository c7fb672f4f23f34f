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

/** The shortest beginning of a name that counts as an abbreviation. */
const MIN_ABBREVIATION = 3;

/**
 * Returns the candidate that `name` may be a misspelling of, so that at most every third character
 * differs, or else the first one that it abbreviates by its beginning, or the only one by its consonants.
 */
export function likelyMeant(name: string, candidates: readonly string[]): string | undefined {
  const [nearest] = nearestFirst(name, candidates);
  if (nearest === undefined) return undefined;
  const length = Math.min(MAX_CHARACTERS, Math.max(name.length, nearest.length));
  const isNear = editDistance(name, nearest) * 3 <= length;
  if (isNear) return nearest;
  if (name.length < MIN_ABBREVIATION) return undefined;
  const short = name.toLowerCase();
  return (
    candidates.find((candidate) => candidate.startsWith(short)) ?? withoutVowels(short, candidates)
  );
}

/** Returns the only candidate, its plural aside, that is written so without some of its letters, all vowels among them, as in `msg`. */
function withoutVowels(short: string, candidates: readonly string[]): string | undefined {
  if (/[aeiou]/.test(short)) return undefined;
  const possible = candidates.filter((candidate) => {
    if (candidate[0]?.toLowerCase() !== short[0]) return false;
    let at = 0;
    for (const letter of candidate.toLowerCase()) if (letter === short[at]) at += 1;
    return at === short.length;
  });
  const [shortest] = possible.toSorted((a, b) => a.length - b.length);
  const isOne = possible.every((candidate) => candidate.startsWith(shortest ?? ''));
  return isOne ? shortest : undefined;
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

/** Whether a name is another one with two letters in the other order, or a letter too many or too few before its end. */
export function isMistyped(name: string, other: string): boolean {
  if (name.startsWith(other) || other.startsWith(name)) return false;
  return isSwapped(name, other) || (name.length !== other.length && distance(name, other) === 1);
}

/** The most names that a hint lists as near ones, and as those that exist. */
const [SHOWN, LISTED] = [3, 12];

/**
 * Returns which of the known names an unknown one may be a misspelling of, nearest first, in a form for the end of a
 * sentence: ` (nearest: desk)`; empty if none is near.
 */
export function nearHint(name: string, known: readonly string[]): string {
  const near = nearestFirst(name, known).filter((one) => likelyMeant(name, [one]) !== undefined);
  return near.length === 0 ? '' : ` (nearest: ${near.slice(0, SHOWN).join(', ')})`;
}

/**
 * Returns which of the known names an unknown one may be a misspelling of, nearest first, or else some that
 * exist: `nearest: desk`, `it has: desk, essay, …`, or `it has none`. `has`: who has them.
 */
export function namesHint(name: string, known: readonly string[], has = 'it has'): string {
  if (known.length === 0) return `${has} none`;
  const near = nearHint(name, known);
  if (near !== '') return near.slice(2, -1);
  const more = known.length > LISTED ? ', …' : '';
  return `${has}: ${known.toSorted().slice(0, LISTED).join(', ')}${more}`;
}
