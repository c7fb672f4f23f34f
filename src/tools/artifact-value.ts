import type { Json } from '../core/json.js';
import { isObject } from '../core/json.js';
import { collect, isAsyncIterable } from './result/collect.js';
import { toWholePlain } from './result/plain.js';
import { redact } from '../secrets/redact.js';
import { redactJsonText } from '../secrets/redact-json.js';
import { headBytes, wellFormed } from './utf8.js';

const HEAD_BYTES = 500;
const KEYS = 12;
const KIND_CHARACTERS = 200;

/** A value as an artifact keeps it. */
export interface ArtifactValue {
  readonly content: string;
  readonly isText: boolean;
  /** For the model: what it is, and how it begins. */
  readonly kind: string;
  readonly head: string;
}

/**
 * Writes a value down so that nothing of it is lost but its form; a stream is read first. Secrets are
 * redacted, as in every result. Where something would be lost the answer says what, and what to do.
 */
export async function artifactValue(
  value: unknown,
  options: { readonly signal?: AbortSignal } = {},
): Promise<ArtifactValue | { readonly problem: string }> {
  const read = isAsyncIterable(value) ? await collect(value, options.signal) : value;
  const whole = toWholePlain(read);
  if ('lost' in whole) {
    return {
      problem:
        `the value holds ${whole.lost}, which an artifact cannot keep; give plain data, bytes as ` +
        'base64 text, or write a file and give its path',
    };
  }
  const { plain } = whole;
  const isText = typeof plain === 'string';
  const content = wellFormed(isText ? redact(plain) : redactJsonText(JSON.stringify(plain)));
  return { content, isText, kind: kindOf(plain), head: headBytes(content, HEAD_BYTES) };
}

/** `array of 300 objects with keys id, euros`. */
export function kindOf(value: Json): string {
  return wellFormed(redact(described(value)).slice(0, KIND_CHARACTERS));
}

function described(value: Json): string {
  if (typeof value === 'string') return `text of ${value.length} characters`;
  if (Array.isArray(value)) {
    const [first] = value as readonly Json[];
    const items = isObject(first) ? ` objects, the first with keys ${keysOf(first)}` : '';
    return `array of ${value.length}${items}`;
  }
  if (isObject(value)) {
    const keys = keysOf(value);
    return keys === '' ? 'empty object' : `object with keys ${keys}`;
  }
  return value === null ? 'null' : `${typeof value} ${JSON.stringify(value)}`;
}

function keysOf(value: object): string {
  const keys = Object.keys(value);
  const shown = keys.slice(0, KEYS).map((key) => printable(key));
  return keys.length > KEYS
    ? `${shown.join(', ')} and ${keys.length - KEYS} more`
    : shown.join(', ');
}

/** A key may hold anything; in a list of artifacts it stands in a line. */
function printable(key: string): string {
  return /^[\w.-]+$/u.test(key) ? key : JSON.stringify(key.slice(0, 40));
}
