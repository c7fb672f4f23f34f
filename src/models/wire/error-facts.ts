import { isObject, parseJson } from '../../core/text/json.js';
import { toArgumentsText } from './content.js';

/** What an error says, wherever in its body it says it. */
export interface ErrorFacts {
  /** The HTTP status, or the one in the body if that is more specific; undefined if there is none. */
  readonly status: number | undefined;
  /** Codes, types, and reasons in lower case, without separators, e.g. `insufficientquota`. */
  readonly codes: readonly string[];
  /** The first of them as the provider wrote it; empty if there is none. */
  readonly code: string;
  /** The provider's words, outermost first. */
  readonly text: string;
  /** The request parameter that the error names; empty if none. */
  readonly param: string;
  /** Milliseconds that the body asks to wait; undefined if it does not. */
  readonly waitMs: number | undefined;
}

/** Maximum values of a body that are read, and how deep they may be nested. */
const MAX_VALUES = 200;
const MAX_DEPTH = 8;
/** Maximum characters of each text that are read; a longer one is mostly a copy of the request. */
const MAX_CHARACTERS = 4_000;

const CODE_KEYS = new Set(
  'code type reason status status_code statusCode error_code errorCode error_type __type'.split(
    ' ',
  ),
);
const TEXT_KEYS = new Set(
  'message msg Message detail description error_description errorMessage status_msg title raw error err'.split(
    ' ',
  ),
);
/**
 * Fields with an error within the error: of Azure (`innererror`), OpenRouter (`metadata`), Google
 * (`details`), MiniMax (`base_resp`), Cloudflare (`errors`), and gateways.
 */
const CHILD_KEYS = new Set(
  'error errors err message detail details innererror inner_error metadata raw cause base_resp headers body provider_error'.split(
    ' ',
  ),
);

/**
 * Reads an error's body: an object, a list with one, a text, or JSON within a text. `now` is the
 * Unix time in milliseconds.
 */
export function readFacts(
  { status, error }: { readonly status?: number; readonly error: unknown },
  now: number,
): ErrorFacts {
  const found: Found = { codes: [], texts: [], waits: [], param: '', values: 0 };
  collect(error, found, 0);
  const statuses = found.codes.map(Number).filter((code) => code >= 400 && code < 600);
  const text = [...new Set(found.texts)].join(' ').slice(0, 2 * MAX_CHARACTERS);
  return {
    status: mostSpecific(status, statuses),
    codes: found.codes.map(normalizeCode),
    code: found.codes.find((code) => /^[A-Za-z_]\w{0,39}$/.test(code)) ?? '',
    text: text === '' && isObject(error) ? toArgumentsText(error).slice(0, MAX_CHARACTERS) : text,
    param: found.param,
    waitMs: readWait(found.waits, now) ?? readWaitInText(text),
  };
}

interface Found {
  readonly codes: string[];
  readonly texts: string[];
  readonly waits: (readonly [name: string, value: unknown])[];
  param: string;
  values: number;
}

function collect(value: unknown, found: Found, depth: number): void {
  found.values += 1;
  if (found.values > MAX_VALUES || depth > MAX_DEPTH) return;
  if (typeof value === 'string') return collectText(value, found, depth);
  if (Array.isArray(value)) {
    for (const item of value.slice(0, 10)) collect(item, found, depth + 1);
    return;
  }
  if (!isObject(value)) return;
  // A validator's complaint: the place is as important as its words.
  if (Array.isArray(value['loc']))
    found.texts.push(toArgumentsText(value).slice(0, MAX_CHARACTERS));
  const isMiniMax = 'status_msg' in value;
  for (const [name, field] of Object.entries(value).slice(0, 50)) {
    if (WAIT_KEYS.has(name.toLowerCase())) found.waits.push([name.toLowerCase(), field]);
    if (CODE_KEYS.has(name) && isCode(field)) {
      found.codes.push(isMiniMax ? `minimax${field}` : String(field));
    } else if (name === 'param' && typeof field === 'string') found.param ||= field;
    else if (CHILD_KEYS.has(name) && isObject(field)) collect(field, found, depth + 1);
    else if (CHILD_KEYS.has(name) && Array.isArray(field)) collect(field, found, depth + 1);
    else if (TEXT_KEYS.has(name) && typeof field === 'string') collectText(field, found, depth);
  }
}

/** Adds a text, or what it says if it is JSON: routers pass the body of the model's server on. */
function collectText(text: string, found: Found, depth: number): void {
  const start = text.slice(0, 100).trimStart();
  const nested = start.startsWith('{') || start.startsWith('[') ? parseJson(text) : undefined;
  if (typeof nested === 'object' && nested !== null) return collect(nested, found, depth + 1);
  if (start !== '') found.texts.push(text.trim().slice(0, MAX_CHARACTERS));
}

/** Whether a value is a code. 0 and 200 are those of a success. */
function isCode(value: unknown): value is string | number {
  if (typeof value === 'number') return value !== 0 && value !== 200;
  return typeof value === 'string' && value !== '' && value.length <= 200;
}

/** Returns the code in lower case without separators and the namespace of AWS. */
export function normalizeCode(code: string): string {
  return code
    .slice(code.lastIndexOf('#') + 1)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '');
}

/** The statuses with which servers and proxies wrap an error of another status. */
const WRAPPERS = new Set([400, 500, 502, 503]);

function mostSpecific(status: number | undefined, nested: readonly number[]): number | undefined {
  const inner = nested.find((code) => !WRAPPERS.has(code));
  if (status === undefined) return inner ?? nested[0];
  return WRAPPERS.has(status) ? (inner ?? status) : status;
}

/** Fields with a wait, in lower case: seconds, a duration, or a Unix time. */
const WAIT_KEYS = new Set([
  'retry_after_ms',
  'retryafterms',
  'retry-after-ms',
  'retry_after',
  'retryafter',
  'retry-after',
  'retry_after_seconds',
  'retrydelay',
  'retry_delay',
  'resets_in_seconds',
  'wait_seconds',
  'estimated_time',
  'x-ratelimit-reset',
]);

function readWait(waits: Found['waits'], now: number): number | undefined {
  return waits.map(([name, value]) => toWaitMs(name, value, now)).find((ms) => ms !== undefined);
}

function toWaitMs(name: string, value: unknown, now: number): number | undefined {
  if (isObject(value)) return toWaitMs(name, value['seconds'], now);
  const text = String(value).trim();
  if (!/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) return toDurationMs(text);
  const number = Number(text);
  if (name.endsWith('ms')) return number;
  // A Unix time, in milliseconds or in seconds.
  if (number > 1e11) return Math.max(0, number - now);
  if (number > 1e9) return Math.max(0, number * 1000 - now);
  return number * 1000;
}

const UNIT_MS: readonly (readonly [RegExp, number])[] = [
  [/^(?:ms|milliseconds?)$/, 1],
  [/^(?:s|secs?|seconds?)$/, 1_000],
  [/^(?:m|mins?|minutes?)$/, 60_000],
  [/^(?:h|hrs?|hours?)$/, 3_600_000],
  [/^(?:d|days?)$/, 86_400_000],
];

/** Reads `20s`, `1m26.4s`, `226ms`, or `20 seconds`; undefined for anything else. */
function toDurationMs(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d{1,9}(?:\.\d{1,9})?)\s?([a-z]{1,12})/gi)];
  if (parts.length === 0) return undefined;
  let total = 0;
  for (const [, number, unit = ''] of parts) {
    const ms = UNIT_MS.find(([pattern]) => pattern.test(unit.toLowerCase()))?.[1];
    if (ms === undefined) return undefined;
    total += Number(number) * ms;
  }
  return total;
}

const DURATION = String.raw`\d{1,9}(?:\.\d{1,9})?\s?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)\b`;
/** A wait in a sentence, such as `try again in 1m26.4s` or `retry after 20 seconds`. */
const WAIT_TEXT = new RegExp(
  String.raw`\b(?:again|retry|wait|retrying|available|resets?|reset) (?:in|after|for|at least)? ?(?:about |approximately |~)?(${DURATION.replace('\\b', '')}(?:[ ,]{0,2}${DURATION.replace('\\b', '')}){0,3})`,
  'i',
);
/** The same without a unit, in seconds. */
const SECONDS_TEXT = /\bretry[ _-]?after:? (\d{1,9})\b(?![-:/.]\d)/i;

function readWaitInText(text: string): number | undefined {
  const duration = WAIT_TEXT.exec(text)?.[1];
  if (duration !== undefined) return toDurationMs(duration);
  const seconds = SECONDS_TEXT.exec(text)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
