import { knownSecrets } from './known.js';
import type { Matcher } from './matcher.js';
import { markOf, withoutSecrets } from './redact.js';

/**
 * Returns a JSON value without known secrets in its texts, numbers, and names of fields, or the
 * same object if it has none. Values that JSON lacks, such as functions, are handled as
 * `JSON.stringify` does.
 */
export function redactJson<T>(value: T): T {
  const matcher = knownSecrets();
  const text = jsonOf(value);
  if (text === undefined || matcher.find(text).length === 0) return value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- shapes remain but for secret bytes
  return safeJson(text, matcher) as T;
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
    const safe = JSON.stringify(safeJson(text, matcher));
    return matcher.find(safe).length === 0 ? safe : JSON.stringify(withoutSecrets(text, matcher));
  } catch {
    return withoutSecrets(text, matcher);
  }
}

/** Parses a JSON text and removes the secrets from its values. */
function safeJson(text: string, matcher: Matcher): unknown {
  return withoutJoined(cleaned(JSON.parse(text), matcher), matcher, 0);
}

/** How deep a secret is searched for that several values of a list or an object form. */
const MAX_LEVELS = 32;

/**
 * Removes secrets that several values form: bytes in a list, or an object that is a secret as a whole.
 */
function withoutJoined(value: unknown, matcher: Matcher, level: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const [first] = matcher.find(JSON.stringify(value));
  if (first === undefined) return value;
  if (level < MAX_LEVELS) {
    const safe = Array.isArray(value)
      ? withoutJoinedItems(
          value.map((item) => withoutJoined(item, matcher, level + 1)),
          matcher,
        )
      : mapValues(value, (child) => withoutJoined(child, matcher, level + 1));
    if (matcher.find(JSON.stringify(safe)).length === 0) return safe;
  }
  return markOf(first);
}

/** Replaces the items of a list that together are a secret by one mark. */
function withoutJoinedItems(items: readonly unknown[], matcher: Matcher): readonly unknown[] {
  const texts = items.map((item) => JSON.stringify(item));
  const spans = matcher.find(`[${texts.join(',')}]`);
  if (spans.length === 0) return items;
  const safe: unknown[] = [];
  let at = 1;
  let next = 0;
  let marked = -1;
  for (const [index, text] of texts.entries()) {
    const end = at + text.length;
    while ((spans[next]?.to ?? Infinity) <= at) next += 1;
    const span = spans[next];
    if (span === undefined || span.from >= end) safe.push(items[index]);
    else if (marked !== next) {
      safe.push(markOf(span));
      marked = next;
    }
    at = end + 1;
  }
  return safe;
}

function mapValues(value: object, change: (child: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, change(child)]));
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
