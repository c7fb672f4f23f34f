import { type Json, parseForeignJson } from '../core/text/json.js';
import {
  describeExpected,
  describeFault,
  findHazard,
  scanJsonValue,
} from '../tools/arguments/arguments.js';
import { headBytes } from '../tools/result/plain.js';

/** A fenced block of a text: the lines between two lines of backticks or tildes. */
export interface Fence {
  /** The first word after the opening marks; empty if there is none. */
  readonly word: string;
  /** The offsets of the content in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** False if the closing line is missing: the content then extends to the end of the text. */
  readonly closed: boolean;
  /** The content without the indentation of the opening line. */
  readonly content: string;
}

/** A line that opens or closes a block: at least three marks of one kind, then the info text. */
interface Mark {
  readonly kind: string;
  readonly length: number;
  readonly info: string;
  readonly indent: number;
}

const MAX_INDENT = 100;
const MARK = /^([ \t]*)(`{3,}|~{3,})/;

/**
 * Finds the outermost fenced blocks of a text, in order.
 *
 * A line of the same mark, at least as long and with nothing after it, closes the block. A line of
 * the same mark with an info word opens a block inside, which has its own closing line, since
 * models write Markdown in Markdown. Marks of the other kind, or shorter ones, are content. Takes
 * linear time.
 */
export function findFences(text: string): Fence[] {
  const found: Fence[] = [];
  let opened: { readonly mark: Mark; readonly start: number } | undefined;
  const lengths: number[] = [];
  for (const { from, to, next } of lines(text)) {
    const mark = readMark(text.slice(from, to));
    if (mark === undefined) continue;
    if (opened === undefined) {
      opened = { mark, start: next };
      lengths.push(mark.length);
      continue;
    }
    if (mark.kind !== opened.mark.kind || mark.length < (lengths.at(-1) ?? 0)) continue;
    if (mark.info === '') lengths.pop();
    else lengths.push(mark.length);
    if (lengths.length > 0) continue;
    found.push(
      createFence(text, opened, { end: Math.max(opened.start, lineBreakBefore(text, from)) }),
    );
    opened = undefined;
  }
  if (opened !== undefined) found.push(createFence(text, opened, {}));
  return found;
}

function* lines(text: string): Generator<{ from: number; to: number; next: number }> {
  for (let from = 0; from < text.length;) {
    const lineBreak = text.indexOf('\n', from);
    const to = lineBreak < 0 ? text.length : lineBreak;
    const next = Math.min(text.length, to + 1);
    yield { from, to, next };
    from = next;
  }
}

function readMark(line: string): Mark | undefined {
  const shown = line.trimEnd();
  const [begin = '', indent = '', marks = ''] = MARK.exec(shown) ?? [];
  const rest = shown.slice(begin.length);
  const kind = marks[0];
  if (kind === undefined || (kind === '`' && rest.includes('`'))) return undefined;
  return {
    kind,
    length: marks.length,
    info: rest.trim(),
    indent: Math.min(indent.length, MAX_INDENT),
  };
}

function lineBreakBefore(text: string, from: number): number {
  const end = from - 1;
  return text[end - 1] === '\r' ? end - 1 : end;
}

function createFence(
  text: string,
  opened: { readonly mark: Mark; readonly start: number },
  {
    end = text.length,
    closed = end < text.length,
  }: { readonly end?: number; readonly closed?: boolean },
): Fence {
  const { info, indent } = opened.mark;
  const raw = text.slice(opened.start, end);
  return {
    word: info.split(/\s/, 1)[0] ?? '',
    start: opened.start,
    end,
    closed,
    content: indent === 0 ? raw : raw.replaceAll(new RegExp(`^[ \\t]{1,${indent}}`, 'gm'), ''),
  };
}

/** A place in a text where an object or an array begins, or something that resembles one. */
interface JsonCandidate {
  readonly kind: 'object' | 'array';
  readonly start: number;
  /** The offset after a complete value, or of the first wrong character. */
  readonly end: number;
}

interface JsonCandidates {
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
function findJsonCandidates(text: string): JsonCandidates {
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

const SAMPLE_BYTES = 60;
const FIX = 'Send one complete JSON value and nothing else.';

type ExtractedJson =
  | { readonly ok: true; readonly value: Json }
  /** `problem` is for the model: what is wrong, where, and what was expected. */
  | { readonly ok: false; readonly problem: string };

interface Parsed {
  readonly value: Json;
  readonly json: string;
  /** What makes the value unusable although it is JSON. */
  readonly problem?: string;
}

/**
 * Extracts the JSON of a model's answer: the whole answer, or a value in a fence or within prose.
 *
 * The last of several values counts: first objects in fences, then other objects, then arrays,
 * which also occur in prose (`[1]`). If broken JSON follows it, the answer is rejected, since the
 * value would be an example or an earlier draft. Duplicate keys, keys that could reach a prototype,
 * and more than 64 levels are rejected.
 *
 * Contract: never throws, and takes time proportional to the text.
 */
export function extractJson(text: string): ExtractedJson {
  const whole = parse(text.trim());
  if (whole !== undefined) return check(unwrap(whole));
  const candidates = findJsonCandidates(text);
  const { attempts, other, pairs } = candidates;
  const chosen = choose(candidates, findFences(text));
  const broken =
    attempts.find(({ start }) => start > (chosen?.start ?? -1)) ?? (chosen ? undefined : other);
  if (broken !== undefined) return describeBroken(text, broken);
  if (chosen === undefined) return describeMissing(text);
  // With a stray bracket after it, the value is part of something larger that is broken.
  if (pairs.lastStray['}'] >= chosen.end) return describeStray(text, pairs.lastStray['}']);
  if (attempts[0] !== undefined && pairs.lastStray[']'] >= chosen.end)
    return describeBroken(text, attempts[0]);
  const value = parse(text.slice(chosen.start, chosen.end));
  return value === undefined ? describeBroken(text, chosen) : check(value);
}

function parse(json: string): Parsed | undefined {
  const parsed = parseForeignJson(json);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was parsed from JSON
  if (parsed.ok) return { value: parsed.value as Json, json };
  return parsed.isJson ? { value: null, json, problem: parsed.problem } : undefined;
}

function check({ value, json, problem }: Parsed): ExtractedJson {
  const hazard = problem ?? findHazard(value);
  if (hazard !== undefined) return reject(`In the JSON of the answer, ${hazard}.`);
  const duplicate = findDuplicateKey(json);
  if (duplicate === undefined) return { ok: true, value };
  const key = headBytes(JSON.stringify(duplicate.key), SAMPLE_BYTES);
  return reject(`In the JSON of the answer, the key ${key} occurs twice in one object.`);
}

function reject(fault: string): ExtractedJson {
  return { ok: false, problem: `${fault} ${FIX}` };
}

/**
 * Finds a key that occurs twice in one object, and its second offset. The text must be valid JSON.
 */
function findDuplicateKey(json: string): { readonly key: string; readonly at: number } | undefined {
  const seen: Set<string>[] = [];
  const places = /["{}]/g;
  for (let found = places.exec(json); found; found = places.exec(json)) {
    const at = found.index;
    if (found[0] === '{') seen.push(new Set());
    else if (found[0] === '}') seen.pop();
    else {
      const end = stringEnd(json, at);
      places.lastIndex = end;
      if (!isFollowedByColon(json, end)) continue;
      const key = String(JSON.parse(json.slice(at, end)));
      const keys = seen.at(-1);
      if (keys?.has(key)) return { key, at };
      keys?.add(key);
    }
  }
  return undefined;
}

function stringEnd(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function isFollowedByColon(json: string, from: number): boolean {
  const next = /[^\t\n\r ]/g;
  next.lastIndex = from;
  return next.exec(json)?.[0] === ':';
}

/** Parses a string that contains JSON again, because small models encode twice. */
function unwrap(whole: Parsed): Parsed {
  if (typeof whole.value !== 'string' || !/^\s*[{[]/.test(whole.value)) return whole;
  return parse(whole.value) ?? whole;
}

function choose({ complete }: JsonCandidates, fences: readonly Fence[]): JsonCandidate | undefined {
  const fenced = withinFences(complete, fences);
  return lastObject(fenced) ?? lastObject(complete) ?? fenced.at(-1) ?? complete.at(-1);
}

function withinFences(
  candidates: readonly JsonCandidate[],
  fences: readonly Fence[],
): JsonCandidate[] {
  let next = 0;
  return candidates.filter(({ start, end }) => {
    while ((fences[next]?.end ?? Infinity) < start) next += 1;
    const fence = fences[next];
    return fence !== undefined && fence.start <= start && end <= fence.end;
  });
}

function lastObject(candidates: readonly JsonCandidate[]): JsonCandidate | undefined {
  return candidates.findLast(({ kind }) => kind === 'object');
}

function describeBroken(text: string, { start }: JsonCandidate): ExtractedJson {
  const scanned = scanJsonValue(text, start);
  const fault = describeFault(text, scanned.at, { ending: 'it ends' });
  return reject(`The answer is not JSON: ${fault}; expected ${describeExpected(scanned)}.`);
}

function describeMissing(text: string): ExtractedJson {
  const sample = text.trim();
  if (sample === '') return reject('The answer is empty.');
  const head = JSON.stringify(headBytes(sample, SAMPLE_BYTES));
  return reject(`There is no JSON in the answer, which begins with ${head}.`);
}

function describeStray(text: string, stray: number): ExtractedJson {
  const fault = describeFault(text, stray, { ending: 'it ends' });
  return reject(
    `The answer is not JSON: ${fault}: it closes nothing. Inside a text, quotes are written \\".`,
  );
}
