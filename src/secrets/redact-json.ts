import { knownSecrets } from './known.js';
import type { Matcher } from './matcher.js';
import { withoutSecrets } from './redact.js';

/**
 * Returns a JSON value without known secrets in its texts, numbers, and names of fields, or the
 * same object if it has none. Values that JSON lacks, such as functions, are handled as
 * `JSON.stringify` does.
 */
export function redactJson<T>(value: T): T {
  const matcher = knownSecrets();
  const text = jsonOf(value);
  if (text === undefined || matcher.find(text).length === 0) return value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts remain texts, and shapes shapes
  return cleaned(JSON.parse(text), matcher) as T;
}

/**
 * Returns undefined for a value that cannot be written as JSON, which cannot leave the process as
 * JSON either.
 */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/**
 * Returns a JSON text without known secrets that is still JSON; any other text is redacted as text.
 */
export function redactJsonText(text: string): string {
  const matcher = knownSecrets();
  if (matcher.find(text).length === 0) return text;
  try {
    const safe = withoutSecrets(JSON.stringify(cleaned(JSON.parse(text), matcher)), matcher);
    // Redacting a secret of several fields also removes their braces.
    return isJson(safe) ? safe : JSON.stringify(safe);
  } catch {
    return withoutSecrets(text, matcher);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function cleaned(value: unknown, matcher: Matcher): unknown {
  if (typeof value === 'string') return withoutSecrets(value, matcher);
  if (typeof value === 'number') {
    const safe = withoutSecrets(String(value), matcher);
    return safe === String(value) ? value : safe;
  }
  if (Array.isArray(value)) return value.map((item) => cleaned(item, matcher));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, child]) => [
    withoutSecrets(name, matcher),
    cleaned(child, matcher),
  ]);
  return Object.fromEntries(entries);
}
