import { scanJsonValue } from '../tools/arguments/json-fault.js';

/** A place in a text where an object or an array begins, or something that resembles one. */
export interface JsonCandidate {
  readonly kind: 'object' | 'array';
  readonly start: number;
  /** The offset after a complete value, or of the first wrong character. */
  readonly end: number;
}

export interface JsonCandidates {
  readonly complete: readonly JsonCandidate[];
  /** Broken JSON: values that have a key with its colon, or at which the text ends. */
  readonly attempts: readonly JsonCandidate[];
  /** The first opening bracket that begins no JSON; mostly in prose. */
  readonly other: JsonCandidate | undefined;
  readonly pairs: BracketPairs;
}

/** The brackets of a text that is only partly JSON. */
interface BracketPairs {
  /** The offset of the closing bracket for each opening bracket that has one. */
  readonly closeOf: ReadonlyMap<number, number>;
  /** The offsets of the last `}` and the last `]` that close nothing; -1 if there is none. */
  readonly lastStray: { readonly '}': number; readonly ']': number };
}

const OPENING = /[[{]/g;
/** Matches the start of an object that is not JSON: `{name: …`, `{'name': …`. */
const KEY_LIKE = /\{\s*['"]?[\w$-]+['"]?\s*:/y;

const OPENER: Readonly<Record<string, string>> = { '}': '{', ']': '[' };

/**
 * Finds all outermost JSON objects and arrays of a text, and the broken ones, in order.
 *
 * Nothing inside a broken value is a candidate, since a part of an answer is not the answer. The
 * search continues after its closing bracket, and ends at a broken object that is never closed.
 * Takes linear time.
 */
export function findJsonCandidates(text: string): JsonCandidates {
  const complete: JsonCandidate[] = [];
  const attempts: JsonCandidate[] = [];
  let other: JsonCandidate | undefined;
  const pairs = pairBrackets(text);
  for (let start = nextOpening(text, 0); start >= 0;) {
    const scanned = scanJsonValue(text, start);
    const end = scanned.at;
    const hasKey = scanned.keys > 0;
    const candidate = { kind: text[start] === '{' ? 'object' : 'array', start, end } as const;
    let next = end;
    if (scanned.complete) {
      complete.push(candidate);
    } else {
      if (hasKey || end >= text.length) attempts.push(candidate);
      else other ??= candidate;
      const close = pairs.closeOf.get(start) ?? -1;
      if (close < 0 && (hasKey || resemblesObject(text, start))) break;
      next = Math.max(end, start + 1, close + 1);
    }
    start = nextOpening(text, next);
  }
  return { complete, attempts, other, pairs };
}

/**
 * Pairs the brackets of any text, prose included. A bracket that does not fit is skipped, and text
 * in double quotes on one line does not count. Takes linear time.
 */
function pairBrackets(text: string): BracketPairs {
  const closeOf = new Map<number, number>();
  const open: { readonly kind: string; readonly at: number }[] = [];
  const counts: Record<string, number> = { '{': 0, '[': 0 };
  const lastStray = { '}': -1, ']': -1 };
  const places = /[{}[\]"]/g;
  const skipQuotes = createQuoteSkipper(text);
  for (let found = places.exec(text); found; found = places.exec(text)) {
    const at = found.index;
    const character = found[0];
    const opener = OPENER[character];
    if (character === '"') {
      places.lastIndex = skipQuotes(at);
    } else if (opener === undefined) {
      open.push({ kind: character, at });
      counts[character] = (counts[character] ?? 0) + 1;
    } else if (counts[opener] === 0) {
      lastStray[character === '}' ? '}' : ']'] = at;
    } else {
      for (let last = open.pop(); last; last = open.pop()) {
        counts[last.kind] = (counts[last.kind] ?? 0) - 1;
        if (last.kind !== opener) continue;
        closeOf.set(last.at, at);
        break;
      }
    }
  }
  return { closeOf, lastStray };
}

/**
 * Returns the offset after the closing quote on the same line, else the offset after the quote
 * itself.
 */
function createQuoteSkipper(text: string): (at: number) => number {
  let lineEnd = -1;
  let isUnpaired = false;
  return (at) => {
    if (at > lineEnd) {
      const lineBreak = text.indexOf('\n', at);
      lineEnd = lineBreak < 0 ? text.length : lineBreak;
      isUnpaired = false;
    }
    if (isUnpaired) return at + 1;
    let close = text.indexOf('"', at + 1);
    // Only to the end of the line: else each line would search the whole rest of the text.
    while (close >= 0 && close <= lineEnd && isEscaped(text, close)) {
      close = text.indexOf('"', close + 1);
    }
    isUnpaired = close < 0 || close > lineEnd;
    return isUnpaired ? at + 1 : close + 1;
  };
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text[before] === '\\') before -= 1;
  return (at - before) % 2 === 0;
}

function nextOpening(text: string, from: number): number {
  OPENING.lastIndex = from;
  return OPENING.exec(text)?.index ?? -1;
}

function resemblesObject(text: string, start: number): boolean {
  KEY_LIKE.lastIndex = start;
  return KEY_LIKE.test(text);
}
