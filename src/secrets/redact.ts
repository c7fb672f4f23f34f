import { knownSecrets } from './known.js';
import type { Matcher } from './matcher.js';
import type { Span } from './search.js';

/**
 * Replaces every known secret in a text, in all its forms, by `[redacted NAME]`. It is meant for
 * data, so it changes nothing else. Never throws.
 */
export function redact(text: string): string {
  return withoutSecrets(text, knownSecrets());
}

/** Replaces the secrets that a given matcher finds. */
export function withoutSecrets(text: string, { find }: Pick<Matcher, 'find'>): string {
  return replaceSpans(text, find(text), { from: 0, to: text.length });
}

/** Returns a part of a text with each span replaced by a mark. */
function replaceSpans(
  text: string,
  spans: readonly Span[],
  part: { readonly from: number; readonly to: number },
): string {
  let { from: at } = part;
  const parts: string[] = [];
  for (const span of spans) {
    parts.push(text.slice(at, Math.max(at, span.from)), markOf(span));
    at = span.to;
  }
  return parts.length === 0 ? text.slice(at, part.to) : parts.join('') + text.slice(at, part.to);
}

/** Returns the mark of a secret, which is valid in JSON, URLs, and log lines. */
function markOf({ name }: Pick<Span, 'name'>): string {
  return /^[\w.-]{1,64}$/.test(name) ? `[redacted ${name}]` : '[redacted]';
}

const KEY_SHAPES = [
  /\bsk-[\w*-]{4,}/g,
  /\b(?:gh[oprsu]_|github_pat_|glpat-|xox[abeprs]-)\w[\w-]{12,}/g,
  /\bBearer\s+(?!\[redacted)(?=[^\s"',;]*[\d=._~+/-])[^\s"',;]{8,}/gi,
  /\bBasic\s+(?=[A-Za-z]*[\d+/=])[A-Za-z\d+/]{8,}={0,2}(?![\w/])/g,
];
const MAX_USER_INFO_CHARACTERS = 512;

/**
 * Redacts a message for people (an error, a log line, a summary): known secrets, and texts that
 * have the form of a secret: keys of well-known issuers, credentials in headers, and the user info
 * of URLs.
 */
export function redactMessage(text: string): string {
  const known = withoutUserInfo(redact(text));
  return KEY_SHAPES.reduce((rest, shape) => rest.replace(shape, '[redacted]'), known);
}

/** Removes the user info of URLs such as `https://user:password@host`. */
function withoutUserInfo(text: string): string {
  let slashes = text.indexOf('://');
  if (slashes === -1) return text;
  const parts: string[] = [];
  let at = 0;
  for (; slashes !== -1; slashes = text.indexOf('://', slashes + 3)) {
    const start = slashes + 3;
    const rest = text.slice(start, start + MAX_USER_INFO_CHARACTERS);
    const [info = ''] = /^[^\s/?#"'<>]*/.exec(rest) ?? [];
    const end = info.lastIndexOf('@');
    // A short name without a password may be `git`; a long one is a token.
    const isSecret = end > 0 && (info.slice(0, end).includes(':') || end >= 16);
    // The text may be cut before the host.
    const isCut = end === -1 && /^[^:@]*:(?!\d{1,5}(?:$|\D))[^:@[\]]{3,}$/.test(info);
    if (!isSecret && !(isCut && start + info.length === text.length)) continue;
    parts.push(text.slice(at, start), '[redacted]');
    at = start + (isSecret ? end : info.length);
  }
  return parts.join('') + text.slice(at);
}

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

/** How many causes of an error are followed. */
const MAX_CAUSES = 8;

/**
 * Returns the fields of a log entry without secrets. Errors remain errors, with message, stack, and
 * causes redacted.
 */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, redactField(value)]),
  );
}

function redactField(value: unknown): unknown {
  if (typeof value === 'string') return redactMessage(value);
  if (value instanceof Error) return redactError(value);
  return typeof value === 'object' && value !== null ? redactJson(value) : value;
}

/** Returns a copy of an error without secrets in its name, message, stack, and causes. */
function redactError(error: Error, depth = 0): Error {
  const { cause } = error;
  const isFollowed = cause instanceof Error && depth < MAX_CAUSES;
  const copy = new Error(
    redactMessage(error.message),
    isFollowed ? { cause: redactError(cause, depth + 1) } : undefined,
  );
  copy.name = redactMessage(error.name);
  copy.stack = redactMessage(error.stack ?? '');
  return copy;
}

/** Redacts a text that arrives in parts. */
export interface StreamRedactor {
  /**
   * Accepts the next part and returns the text that can be shown. Holds back an end that may start
   * a secret.
   */
  push(part: string): string;
  /** Returns the text that was held back. Call this after the last part. */
  end(): string;
  /** How many characters are held back. */
  readonly held: number;
}

/**
 * How many characters that were shown are looked at again: the first few of a secret may be among
 * them, in an encoding that needs many characters for each.
 */
const LOOK_BACK = 128;

/** Creates a redactor for one stream. */
export function createStreamRedactor(): StreamRedactor {
  /** The last characters shown, before redaction. */
  let shown = '';
  let held = '';

  const show = (text: string, isWhole: boolean): string => {
    const matcher = knownSecrets();
    const spans = matcher.find(text);
    const open = isWhole ? text.length : matcher.openFrom(text);
    // A secret that begins in the open end may go on: its rest alone would not be recognized.
    const complete = spans.filter((span) => isWhole || span.from < open);
    // The end of a complete secret may look like the start of another.
    const cut = complete.reduce((end, { to }) => Math.max(end, to), Math.max(open, shown.length));
    const ready = complete.filter((span) => span.to > shown.length);
    const result = replaceSpans(text, ready, { from: shown.length, to: cut });
    held = text.slice(cut);
    shown = text.slice(Math.max(ready.at(-1)?.to ?? 0, cut - LOOK_BACK), cut);
    return result;
  };

  return {
    push: (part) => show(shown + held + part, false),
    end: () => show(shown + held, true),
    get held() {
      return held.length;
    },
  };
}
