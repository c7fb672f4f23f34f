import { wellFormed } from '../core/text/whole-text.js';
import type { Json } from '../core/json.js';
import { describeValue } from '../core/artifacts/describe-value.js';
import { collect, isAsyncIterable } from './result/collect.js';
import { toWholePlain } from './result/plain.js';
import { redact } from '../secrets/redact.js';
import { redactJsonText } from '../secrets/redact-json.js';
import { headBytes } from './utf8.js';

const HEAD_BYTES = 500;
const KIND_CHARACTERS = 200;

/** A value in the form in which an artifact stores it. */
export interface ArtifactValue {
  readonly content: string;
  readonly isText: boolean;
  /** A one-line description of the value, for the model. */
  readonly kind: string;
  /** The start of the value, for the model. */
  readonly head: string;
}

/**
 * Serializes a value completely; a stream is read first. Secrets are redacted, as in every result.
 * Returns a problem with its fix if part of the value would be lost.
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
        `the value holds ${whole.lost}, which an artifact cannot store; give plain data, bytes as ` +
        'base64 text, or write a file and give its path',
    };
  }
  const { plain } = whole;
  const isText = typeof plain === 'string';
  const content = wellFormed(isText ? redact(plain) : redactJsonText(JSON.stringify(plain)));
  return { content, isText, kind: kindOf(plain), head: headBytes(content, HEAD_BYTES) };
}

/** Describes a value in one line, such as `array of 300 objects, the first with keys id, euros`. */
export function kindOf(value: Json): string {
  return wellFormed(redact(describeValue(value)).slice(0, KIND_CHARACTERS));
}
