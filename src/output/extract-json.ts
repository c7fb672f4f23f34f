import type { Json } from '../core/json.js';
import { describeExpected, describeFault, scanJsonValue } from '../tools/arguments/json-fault.js';
import { findHazard } from '../tools/arguments/json-hazard.js';
import { headBytes } from '../tools/utf8.js';
import { findFences, type Fence } from './fences.js';
import { jsonCandidates, type JsonCandidate, type JsonCandidates } from './json-candidates.js';

const SAMPLE_BYTES = 60;
const CURE = 'Send one complete JSON value and nothing else.';

export type ExtractedJson =
  | { readonly ok: true; readonly value: Json }
  /** `problem` is for the model: what is wrong, where, and what would be right. */
  | { readonly ok: false; readonly problem: string };

/**
 * The JSON in a model's answer: the whole answer, or what stands in a fence or between prose.
 *
 * Of several the last one counts: an object in a fence before any other object, and objects before
 * arrays, which prose has too (`[1]`). When an attempt at JSON that broke off or is faulty comes
 * after it, nothing is taken: the answer would be an example or an earlier draft. Keys that
 * occur twice in an object or could reach a prototype, and more than 64 levels, are refused.
 *
 * Contract: never throws; takes time in proportion to the text.
 */
export function extractJson(text: string): ExtractedJson {
  const whole = parsed(text.trim());
  if (whole !== undefined) return checked(unwrapped(whole));
  const candidates = jsonCandidates(text);
  const { attempts, other, pairs } = candidates;
  const chosen = choose(candidates, findFences(text));
  const broken =
    attempts.find(({ start }) => start > (chosen?.start ?? -1)) ?? (chosen ? undefined : other);
  if (broken !== undefined) return notJson(text, broken);
  if (chosen === undefined) return noJson(text);
  // A bracket too many behind it: then it is a piece of something larger that is broken.
  if (pairs.lastStray['}'] >= chosen.end) return piece(text, pairs.lastStray['}']);
  if (attempts[0] !== undefined && pairs.lastStray[']'] >= chosen.end)
    return notJson(text, attempts[0]);
  const value = parsed(text.slice(chosen.start, chosen.end));
  return value === undefined ? notJson(text, chosen) : checked(value);
}

interface Parsed {
  readonly value: Json;
  readonly json: string;
}

function parsed(json: string): Parsed | undefined {
  try {
    const value: Json = JSON.parse(json);
    return { value, json };
  } catch {
    return undefined;
  }
}

/** Small models encode twice: the text of a JSON text is read as what it says. */
function unwrapped(whole: Parsed): Parsed {
  if (typeof whole.value !== 'string' || !/^\s*[{[]/.test(whole.value)) return whole;
  return parsed(whole.value) ?? whole;
}

function checked({ value, json }: Parsed): ExtractedJson {
  const hazard = findHazard(value);
  if (hazard !== undefined) return refused(`In the JSON of the answer, ${hazard}.`);
  const twice = findDuplicateKey(json);
  if (twice === undefined) return { ok: true, value };
  const key = headBytes(JSON.stringify(twice.key), SAMPLE_BYTES);
  return refused(`In the JSON of the answer, the key ${key} occurs twice in one object.`);
}

function choose({ complete }: JsonCandidates, fences: readonly Fence[]): JsonCandidate | undefined {
  const fenced = withinFences(complete, fences);
  return lastObject(fenced) ?? lastObject(complete) ?? fenced.at(-1) ?? complete.at(-1);
}

function lastObject(candidates: readonly JsonCandidate[]): JsonCandidate | undefined {
  return candidates.findLast(({ kind }) => kind === 'object');
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

function notJson(text: string, { start }: JsonCandidate): ExtractedJson {
  const scanned = scanJsonValue(text, start);
  const fault = describeFault(text, scanned.at, { ending: 'it ends' });
  return refused(`The answer is not JSON: ${fault}; expected ${describeExpected(scanned)}.`);
}

function piece(text: string, stray: number): ExtractedJson {
  const fault = describeFault(text, stray, { ending: 'it ends' });
  return refused(
    `The answer is not JSON: ${fault}: it closes nothing. Inside a text, quotes are written \\".`,
  );
}

function noJson(text: string): ExtractedJson {
  const sample = text.trim();
  if (sample === '') return refused('The answer is empty.');
  const head = JSON.stringify(headBytes(sample, SAMPLE_BYTES));
  return refused(`There is no JSON in the answer, which begins with ${head}.`);
}

function refused(fault: string): ExtractedJson {
  return { ok: false, problem: `${fault} ${CURE}` };
}

/** A key that occurs twice in one object, and where the second time; the text is valid JSON. */
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
