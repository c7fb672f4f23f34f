import { isKnownWhole, tellingLength } from './public-prefix.js';

/** One way of writing a secret. */
export interface Form {
  readonly text: string;
  /** How many of its first characters give the secret away. */
  readonly telling: number;
}

/** A piece of a secret that was cut on the left is recognized from so many characters on. */
const TAIL = 16;

/**
 * Returns every way of writing a secret that is looked for: as it is, escaped for JSON (once and twice)
 * and HTML, encoded for URLs and forms, as hex in either case, and as base64 in both alphabets at each
 * of the three places that it can have in a longer text.
 */
export function formsOf(secret: string): readonly Form[] {
  const telling = secret.slice(0, tellingLength(secret));
  const forms = new Map<string, Form>();
  for (const write of WRITINGS) {
    const text = write(secret);
    const part = Math.min(write(telling).length, text.length);
    const known = forms.get(text);
    if (known === undefined || known.telling > part) forms.set(text, { text, telling: part });
  }
  return [...forms.values()];
}

/** Returns the last characters of a secret by which its end is recognized; null where it has no such end. */
export function tailOf(secret: string): string | null {
  if (secret.includes('\n') || secret.length < 2 * TAIL) return null;
  // Behind the user info of a URL are host and path, which may be told; the armor of a PEM file is public.
  const isUrl = /^[a-z][a-z\d+.-]*:\/\//i.test(secret);
  return isUrl || secret.endsWith('-----') || isKnownWhole(secret) ? null : secret.slice(-TAIL);
}

type Writing = (text: string) => string;

/** Half a surrogate pair cannot be encoded. */
const wholeCharacters: Writing = (text) => Buffer.from(text).toString();
const json: Writing = (text) => JSON.stringify(text).slice(1, -1);
const lowerEscapes: Writing = (text) =>
  text.replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase());
const url: Writing = (text) => encodeURIComponent(wholeCharacters(text));
/** Also what `encodeURIComponent` leaves as it is. */
const strictUrl: Writing = (text) =>
  url(text).replaceAll(/[!'()*]/g, (mark) => `%${hexOf(mark).toUpperCase()}`);
const urlSafe: Writing = (text) => text.replaceAll('+', '-').replaceAll('/', '_');
const hexOf: Writing = (text) => Buffer.from(text).toString('hex');
const unicode: Writing = (text) =>
  json(text).replaceAll(
    /[<>&'\u007f-\uffff]/g,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const html: Writing = (text) => text.replaceAll(/[&<>"']/g, (mark) => ENTITIES[mark] ?? mark);

/** Base64 of a text with `before` bytes in front of it: only the characters that depend on nothing else. */
function base64At(before: 0 | 1 | 2): Writing {
  return (text) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]);
    const from = Math.ceil((before * 8) / 6);
    return bytes.toString('base64').slice(from, Math.floor((bytes.length * 8) / 6));
  };
}

const BASE64 = ([0, 1, 2] as const).map((before) => base64At(before));

const WRITINGS: readonly Writing[] = [
  (text) => text,
  json,
  (text) => json(json(text)),
  (text) => json(text).replaceAll('/', '\\/'),
  unicode,
  html,
  url,
  (text) => lowerEscapes(url(text)),
  strictUrl,
  (text) => lowerEscapes(strictUrl(text)),
  (text) => strictUrl(text).replaceAll('%20', '+'),
  (text) => encodeURI(wholeCharacters(text)),
  hexOf,
  (text) => hexOf(text).toUpperCase(),
  ...BASE64,
  ...BASE64.map(
    (write): Writing =>
      (text) =>
        urlSafe(write(text)),
  ),
];
