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
export function replaceSpans(
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
export function markOf({ name }: Pick<Span, 'name'>): string {
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
