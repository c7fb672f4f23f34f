import { scanJsonValue } from '../tools/arguments/json-fault.js';
import { bracketPairs, type BracketPairs } from './bracket-pairs.js';

/** A place in a text where an object or an array begins, or something that looks like one. */
export interface JsonCandidate {
  readonly kind: 'object' | 'array';
  readonly start: number;
  /** Behind a complete value; else the first character that is wrong. */
  readonly end: number;
}

export interface JsonCandidates {
  readonly complete: readonly JsonCandidate[];
  /** What was meant as JSON and is not: it has a key with its colon, or the text ends in it. */
  readonly attempts: readonly JsonCandidate[];
  /** The first opening bracket that begins nothing: in prose, as a rule. */
  readonly other: JsonCandidate | undefined;
  readonly pairs: BracketPairs;
}

const OPENING = /[[{]/g;
/** Begins like an object, if not one of JSON: `{name: …`, `{'name': …`. */
const KEY_LIKE = /\{\s*['"]?[\w$-]+['"]?\s*:/y;

/**
 * All outermost JSON objects and arrays of a text, in order, and the attempts at one.
 *
 * What is inside of a broken one is never a candidate: a piece of an answer is not the answer. So
 * reading goes on behind its closing bracket; a broken object that none closes ends the search.
 * Takes linear time.
 */
export function jsonCandidates(text: string): JsonCandidates {
  const complete: JsonCandidate[] = [];
  const attempts: JsonCandidate[] = [];
  let other: JsonCandidate | undefined;
  const pairs = bracketPairs(text);
  for (let start = nextOpening(text, 0); start >= 0;) {
    const scanned = scanJsonValue(text, start);
    const end = scanned.at;
    const keyed = scanned.keys > 0;
    const candidate = { kind: text[start] === '{' ? 'object' : 'array', start, end } as const;
    let next = end;
    if (scanned.complete) {
      complete.push(candidate);
    } else {
      if (keyed || end >= text.length) attempts.push(candidate);
      else other ??= candidate;
      const close = pairs.closeOf.get(start) ?? -1;
      if (close < 0 && (keyed || looksKeyed(text, start))) break;
      next = Math.max(end, start + 1, close + 1);
    }
    start = nextOpening(text, next);
  }
  return { complete, attempts, other, pairs };
}

function nextOpening(text: string, from: number): number {
  OPENING.lastIndex = from;
  return OPENING.exec(text)?.index ?? -1;
}

function looksKeyed(text: string, start: number): boolean {
  KEY_LIKE.lastIndex = start;
  return KEY_LIKE.test(text);
}
