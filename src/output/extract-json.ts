import { parseForeignJson } from '../core/foreign-json.js';
import type { Json } from '../core/json.js';
import { describeExpected, describeFault, scanJsonValue } from '../tools/arguments/json-fault.js';
import { findHazard } from '../tools/arguments/json-hazard.js';
import { headBytes } from '../tools/utf8.js';
import { findFences, type Fence } from './fences.js';
import { findJsonCandidates, type JsonCandidate, type JsonCandidates } from './json-candidates.js';

const SAMPLE_BYTES = 60;
const FIX = 'Send one complete JSON value and nothing else.';

export type ExtractedJson =
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
