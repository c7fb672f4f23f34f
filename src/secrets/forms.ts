import { readEscapes } from './readings.js';

/** Matches at least two pairs: `host=db port=5432 password=…` or `AccountName=…;AccountKey=…`. */
const PAIRS = /^[a-z]\w*=[^;\s]*[;\s]+[a-z]\w*=/i;
const PAIR = /(?<!\w)([a-z]\w*)=([^;\s]+)/gi;

/**
 * Returns the fields of a composed value (a JSON object or list, or pairs), or null for any other
 * value.
 */
export function fieldsOf(value: string): readonly (readonly [name: string, text: string])[] | null {
  const given = value.trim();
  if (PAIRS.test(given)) {
    return [...given.matchAll(PAIR)].map(([, name = '', text = '']) => [name, text]);
  }
  const json = jsonOf(given);
  return json === undefined ? null : textsIn(json, '');
}

function textsIn(node: unknown, name: string): readonly (readonly [string, string])[] {
  if (typeof node === 'string') return [[name, node]];
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap((child) => textsIn(child, name));
  return Object.entries(node).flatMap(([key, child]) => textsIn(child, key));
}

function jsonOf(text: string): unknown {
  if (!/^[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One written form of a secret. */
export interface Form {
  readonly text: string;
  /** How many of its first characters reveal the secret. */
  readonly revealing: number;
  /**
   * Twice as many characters reveal the secret wherever they are from; zero if only its start does.
   */
  readonly block: number;
  /** The offset after its public prefix. */
  readonly from: number;
}

/** The number of last characters that suffice to recognize a secret whose start was cut off. */
const TAIL = 16;

/** How a secret may be written, by the reading of a text in which it is searched for. */
export interface Forms {
  readonly written: readonly Form[];
  /** In the text without escapes, and in the characters of lists of numbers. */
  readonly read: readonly Form[];
  /** In the text without line breaks and blanks. */
  readonly packed: readonly Form[];
  /** In the hexadecimal digits of a text: what `read` finds in the bytes that they are. */
  readonly hex: readonly Form[];
}

/** The characters of a block: two blocks hold 24 characters of the secret. */
const BLOCKS = { text: 12, hex: 24, base64: 15, wideBase64: 30 };

/**
 * Returns every form of a secret that is searched for: unchanged, escaped for JSON (once and twice)
 * and HTML, encoded for URLs and forms, as hex in either case, and as base64 in both alphabets, of
 * UTF-8 and UTF-16, at each of the three offsets that it can have in a longer text.
 */
export function formsOf(secret: string): Forms {
  return {
    written: formsIn(secret, WRITINGS),
    read: formsIn(secret, READ),
    packed: formsIn(secret, PACKED),
    hex: formsIn(secret, HEX),
  };
}

function formsIn(secret: string, writings: readonly (readonly [Writing, number])[]): Form[] {
  const revealing = secret.slice(0, revealingLength(secret));
  const prefix = secret.slice(0, publicLength(secret));
  const isWhole = tailOf(secret) === null;
  const forms = new Map<string, Form>();
  for (const [write, block] of writings) {
    const text = write(secret);
    const part = Math.min(write(revealing).length, text.length);
    const known = forms.get(text);
    if (known !== undefined && known.revealing <= part) continue;
    const from = write(prefix).length;
    forms.set(text, { text, revealing: part, block: isWhole ? 0 : block, from });
  }
  return [...forms.values()];
}

/**
 * Returns the last characters of a secret that identify its end, or null if its end is not secret.
 */
export function tailOf(secret: string): string | null {
  if (secret.includes('\n') || secret.length < 2 * TAIL) return null;
  // Host and path of a URL follow its user info and are not secret; the armor of a PEM file is
  // public.
  const isUrl = /^[a-z][a-z\d+.-]*:\/\//i.test(secret);
  return isUrl || secret.endsWith('-----') || isKnownWhole(secret) ? null : secret.slice(-TAIL);
}

type Writing = (text: string) => string;

const same: Writing = (text) => text;
/** Lone surrogates cannot be encoded, so they are replaced. */
const wholeCharacters: Writing = (text) => Buffer.from(text).toString();
const json: Writing = (text) => JSON.stringify(text).slice(1, -1);
const lowerEscapes: Writing = (text) =>
  text.replaceAll(/%[\dA-F]{2}/g, (code) => code.toLowerCase());
const url: Writing = (text) => encodeURIComponent(wholeCharacters(text));
/** Also encodes the characters that `encodeURIComponent` leaves unchanged. */
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

/**
 * Encodes a text that follows `before` other bytes; returns only the characters that the text
 * determines.
 */
function base64At(before: number, encoding: 'utf8' | 'utf16le'): Writing {
  return (text) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text, encoding)]);
    const from = Math.ceil((before * 8) / 6);
    return bytes.toString('base64').slice(from, Math.floor((bytes.length * 8) / 6));
  };
}

type Kind = readonly [write: Writing, block: number];

const BASE64 = [0, 1, 2].flatMap((before): Kind[] => [
  [base64At(before, 'utf8'), BLOCKS.base64],
  [base64At(before, 'utf16le'), BLOCKS.wideBase64],
]);

const TEXTS: readonly Writing[] = [
  same,
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
];
const WRITINGS: readonly Kind[] = [
  ...TEXTS.map((write): Kind => [write, BLOCKS.text]),
  [hexOf, BLOCKS.hex],
  [(text) => hexOf(text).toUpperCase(), BLOCKS.hex],
  ...BASE64,
  ...BASE64.map(([write, block]): Kind => [(text) => urlSafe(write(text)), block]),
];

/** A secret may have escapes itself. */
const unescaped: Writing = (text) => readEscapes(text).text;
/** JSON also escapes line breaks. */
const jsonUnescaped: Writing = (text) => unescaped(text.replaceAll('\n', '\\n'));
const formUnescaped: Writing = (text) => unescaped(text).replaceAll(' ', '+');
const bytesOf: Writing = (text) => Buffer.from(text).toString('latin1');
/** Readings leave out characters of zero. */
const wideBytesOf: Writing = (text) =>
  Buffer.from(text, 'utf16le').toString('latin1').replaceAll('\0', '');
const swappedBytesOf: Writing = (text) =>
  Buffer.from(text, 'utf16le').swap16().toString('latin1').replaceAll('\0', '');
const READ: readonly Kind[] = [
  ...[same, unescaped, jsonUnescaped, formUnescaped]
    .flatMap((write): Writing[] => [write, (text) => bytesOf(write(text))])
    .concat(wideBytesOf, swappedBytesOf)
    .map((write): Kind => [write, BLOCKS.text]),
  ...BASE64,
];
const PACKED = BASE64;

const wide = (text: string): Buffer => Buffer.from(text, 'utf16le');
const wider = (text: string): Buffer =>
  Buffer.from(Uint32Array.from(text, (mark) => mark.codePointAt(0) ?? 0).buffer);
/** Bytes of zero, which readings leave out, have their places here. */
const BYTES: readonly (readonly [bytes: (text: string) => Buffer, width: number])[] = [
  [(text) => Buffer.from(text), 1],
  [(text) => Buffer.from(text, 'latin1'), 1],
  [wide, 2],
  [(text) => wide(text).swap16(), 2],
  [wider, 4],
  [(text) => wider(text).swap32(), 4],
];
/** Returns every form of a text in hexadecimal digits, in lower case and without separators. */
export function hexFormsOf(text: string): readonly string[] {
  return BYTES.map(([bytes]) => bytes(text).toString('hex'));
}
const HEX: readonly Kind[] = [
  ...[same, unescaped, jsonUnescaped, formUnescaped].flatMap((write) =>
    BYTES.map(([bytes, width]): Kind => [
      (text) => bytes(write(text)).toString('hex'),
      width * BLOCKS.hex,
    ]),
  ),
  ...BASE64.map(([write, block]): Kind => [(text) => hexOf(write(text)), 2 * block]),
];

/** Public prefixes of keys, which name the kind and the issuer; the longest comes first. */
const PREFIXES = (
  'sk-ant-api03- sk-ant-oat01- sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf- sk- pk-lf- ' +
  'sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_ github_pat_ ghp_ gho_ ghu_ ghs_ ghr_ ' +
  'glpat- xoxb- xoxp- xoxa- xoxs- xoxe. xapp- hf_ gsk_ npm_ pypi-AgEIcHlwaS5vcmc pypi- r8_ pplx- xai- tvly- ' +
  'lsv2_pt_ lin_api_ dop_v1_ shpat_ SG. ya29. AKIA ASIA AIzaSy ntn_ secret_ fly_ hvs. dckr_pat_'
)
  .split(' ')
  .toSorted((a, b) => b.length - a.length);

/** The scheme of a URL, and its host if it has no user info. */
const URL_BEGIN = /^[a-z][a-z\d+.-]*:\/\/(?:[^\s/?#@]*[/?#])?/i;
/** The path of a file or a folder. */
const PLACE = /^(?:(?:~|\.{1,2})?(?:\/[\w.@ -]+)+\/?|[a-z]:\\[^\n]*)$/i;
const PEM_ARMOR = /^-----BEGIN [A-Z\d ]+-----\s*/;
const AUTH_SCHEME = /^(?:Basic|Bearer|Token|Bot) +/i;
/** The header of a JWT, which names an algorithm. */
const JWT_HEADER = /^eyJ[\w-]{8,}\./;

/** How many characters of a secret after its public prefix reveal it. */
const REVEALING_CHARACTERS = 12;

/**
 * Returns how many of a secret's first characters reveal it: its public prefix and 12 more. For a
 * shorter secret, and for one that is recognized only as a whole, it is the whole length.
 */
function revealingLength(secret: string): number {
  if (isKnownWhole(secret)) return secret.length;
  return Math.min(secret.length, publicLength(secret) + REVEALING_CHARACTERS);
}

/**
 * Returns whether only the whole secret reveals it: many paths and lists of fields have the same
 * start.
 */
function isKnownWhole(secret: string): boolean {
  return PLACE.test(secret) || fieldsOf(secret) !== null;
}

function publicLength(secret: string): number {
  for (const shape of [URL_BEGIN, PEM_ARMOR, JWT_HEADER]) {
    const [begin = ''] = shape.exec(secret) ?? [];
    if (begin !== '') return begin.length;
  }
  const [scheme = ''] = AUTH_SCHEME.exec(secret) ?? [];
  const bare = secret.slice(scheme.length);
  return scheme.length + (PREFIXES.find((prefix) => bare.startsWith(prefix))?.length ?? 0);
}

/**
 * A text that must not leave the process, and its environment variable; an empty name if it has
 * none.
 */
export interface Secret {
  readonly name: string;
  readonly value: string;
}

/** Shorter lines of a multi-line secret appear in other texts as well. */
const MIN_LINE_CHARACTERS = 16;
const USER_INFO = /:\/\/([^\s/?#"'<>]*)@/g;

/**
 * Returns all secret texts of a variable's value: the value itself if `isSecret`, each line of a
 * key with several lines, the secret fields of a JSON object or of pairs, and the user info of
 * URLs.
 */
export function partsOfValue(
  value: string,
  how: { readonly isSecret: boolean; readonly isSecretName: (name: string) => boolean },
): readonly string[] {
  const parts = new Set(userInfo(value));
  if (how.isSecret) {
    parts.add(value.trim());
    const composed = fieldsOf(value);
    if (composed !== null) {
      const secret = composed.filter(([name]) => how.isSecretName(name));
      return [...parts, ...secret.flatMap(([, text]) => partsOfValue(text, how))];
    }
    // Keys with several lines often have their line breaks written as \n.
    const lines = value
      .trim()
      .replaceAll(/\\r|\r/g, '')
      .replaceAll('\\n', '\n');
    if (lines.includes('\n')) {
      parts.add(lines);
      for (const line of lines.split('\n')) if (isSecretLine(line.trim())) parts.add(line.trim());
    }
  }
  parts.delete('');
  return [...parts];
}

/** Returns whether a line is secret; the armor of a PEM file is not. */
function isSecretLine(line: string): boolean {
  return line.length >= MIN_LINE_CHARACTERS && !line.startsWith('-----');
}

/** Returns the user info of the URLs in a text, and the password alone, as written and decoded. */
function userInfo(text: string): readonly string[] {
  if (!text.includes('://')) return [];
  return [...text.matchAll(USER_INFO)].flatMap(([, info = '']) => {
    const colon = info.indexOf(':');
    // A name without a password may be a token (`https://TOKEN@host`), or `git`.
    if (colon === -1) return info.length < 16 ? [] : [info, decoded(info)];
    const password = info.slice(colon + 1);
    return password === '' ? [] : [info, decoded(info), password, decoded(password)];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
