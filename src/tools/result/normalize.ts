import { collect, isAsyncIterable } from './collect.js';
import { toPlain } from './plain.js';
import { redact } from '../../secrets/redact.js';
import { redactJsonText } from '../../secrets/redact-json.js';
import { wellFormed } from '../utf8.js';

const MAX_CHARACTERS = 64 * 1024 * 1024;

/**
 * What a tool returned, as text for the model: text stays as it is, anything else becomes JSON (see
 * `toPlain`), streams are read (see `collect`), nothing is "(no result)". Secrets are redacted.
 *
 * Contract: never rejects; `signal` ends the reading of a stream. The text may still be large: see
 * `fitText`.
 */
export async function normalizeResult(
  value: unknown,
  options: { readonly signal?: AbortSignal } = {},
): Promise<string> {
  if (value === undefined) return '(no result)';
  const plain = isAsyncIterable(value) ? await collect(value, options.signal) : toPlain(value);
  const text = typeof plain === 'string' ? redact(plain) : redactJsonText(serialize(plain));
  return wellFormed(text);
}

function serialize(value: unknown): string {
  try {
    const text = JSON.stringify(value);
    if (text.length <= MAX_CHARACTERS) return text;
    return `${text.slice(0, MAX_CHARACTERS)}[${text.length - MAX_CHARACTERS} characters omitted]`;
  } catch {
    // Only a text beyond the engine's longest string: escapes can make six characters of one.
    return '[a result too large to be written as JSON]';
  }
}
