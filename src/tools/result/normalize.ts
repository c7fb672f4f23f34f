import { wellFormed } from '../../core/text/whole-text.js';
import { collect, isAsyncIterable } from './collect.js';
import { toPlain } from './plain.js';
import { redact } from '../../secrets/redact.js';
import { redactJsonText } from '../../secrets/redact-json.js';

const MAX_CHARACTERS = 64 * 1024 * 1024;

/**
 * Converts a tool's result into text for the model: text stays unchanged, streams are read (see
 * `collect`), other values become JSON (see `toPlain`), and undefined becomes "(no result)".
 * Secrets are redacted.
 *
 * Never rejects; `signal` ends the reading of a stream. The text may still be large: see `fitText`.
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
    // Only a text beyond V8's maximum string length gets here: escaping can turn one character into
    // six.
    return '[a result too large to be written as JSON]';
  }
}
