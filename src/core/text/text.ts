/**
 * Returns the text with each half of a surrogate pair that stands alone replaced by U+FFFD. Such a
 * half has no UTF-8 form: databases refuse it, and so do many providers, in every later request.
 */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Returns at most the first `units` UTF-16 units of a text, never ending inside a surrogate pair. */
export function headOf(text: string, units: number): string {
  if (text.length <= units) return text;
  const end = Math.max(0, units);
  return text.slice(0, isHighHalf(text.charCodeAt(end - 1)) ? end - 1 : end);
}

/** Returns at most the last `units` UTF-16 units of a text, never beginning inside a pair. */
export function tailOf(text: string, units: number): string {
  if (text.length <= units) return text;
  const from = text.length - Math.max(0, units);
  return text.slice(isLowHalf(text.charCodeAt(from)) ? from + 1 : from);
}

/** Returns at most the first `units` UTF-16 units of a text for people; `…` is the last one of a cut text. */
export function shorten(text: string, units: number): string {
  return text.length <= units ? text : `${headOf(text, units - 1)}…`;
}

/**
 * Returns the text without the last characters that `tail` matches, one unit at a time: an
 * expression such as `/x+$/` takes quadratic time.
 */
export function withoutTail(text: string, tail: RegExp): string {
  let end = text.length;
  while (end > 0 && tail.test(text[end - 1] ?? '')) end -= 1;
  return text.slice(0, end);
}

function isHighHalf(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff;
}

function isLowHalf(unit: number): boolean {
  return unit >= 0xdc_00 && unit <= 0xdf_ff;
}

/**
 * Characters that are invisible or that control a terminal: control characters, formats (zero
 * width, direction, tags), line separators, private use, lone surrogates, and everything that
 * Unicode calls ignorable (variation selectors, fillers). Line breaks and tabs are not included,
 * and neither are the Arabic and Syriac signs that Unicode classifies as formats.
 */
const HIDDEN =
  /(?![\n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** One emoji of a sequence, with its skin tone or presentation. */
const PICTURE = /\p{Extended_Pictographic}(?:\p{Emoji_Modifier}\ufe0f?|[\ufe0e\ufe0f])?/u;

/**
 * Places where such a character is part of ordinary writing. It occurs there only singly, so it
 * cannot hide a message: emoji sequences, keycaps, the flags of England, Scotland, and Wales,
 * joiners in the scripts that need them, and variants of ideographs, mathematical signs, and
 * Mongolian letters.
 */
const WRITING = [
  /\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/u,
  new RegExp(`${PICTURE.source}(?:\\u200d${PICTURE.source})*`, 'u'),
  /[0-9#*]\ufe0f\u20e3/u,
  /(?<=[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}])(?<![\p{P}\p{Default_Ignorable_Code_Point}])[\u200c\u200d]/u,
  /(?<=\p{Script=Han})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]/u,
  /(?<=\p{Sm})\ufe00/u,
  /(?<=\p{Script=Mongolian})(?<!\p{Default_Ignorable_Code_Point})[\u180b-\u180f]/u,
];

/** Matches ordinary writing first, so the second group matches only hidden characters. */
const PARTS = new RegExp(
  `(${WRITING.map(({ source }) => source).join('|')})|(${HIDDEN.source})`,
  'gu',
);
/** A fast test, because nearly every text is plain. */
const PLAIN = /^[\n\t\u0020-\u007e]*$/;

/** Replaces each hidden character. */
function replaceHidden(text: string, instead: (character: string) => string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(PARTS, (part: string, writing: string | undefined) =>
    writing === undefined ? instead(part) : part,
  );
}

/** Returns the number of hidden characters. A Windows line break counts as visible. */
export function countHidden(text: string): number {
  let count = 0;
  replaceHidden(text.replaceAll('\r\n', '\n'), (character) => {
    count += 1;
    return character;
  });
  return count;
}

/** Returns the text without hidden characters. */
export function withoutHidden(text: string): string {
  return replaceHidden(text.replaceAll('\r\n', '\n'), () => '');
}

/**
 * Returns a text of any number of lines for a terminal or a page: hidden characters become escapes
 * (`\u202e`, `\u{e0041}`), and all others stay unchanged.
 */
export function printable(text: string): string {
  return replaceHidden(text.replaceAll('\r\n', '\n'), (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
  });
}

/**
 * Returns JSON in which hidden characters are JSON escapes. People see them, and programs still
 * read the same value.
 */
export function escapeJson(json: string): string {
  // Between values there may be a Windows line break.
  return replaceHidden(json, (character) =>
    character === '\r' ? character : jsonEscape(character),
  );
}

/**
 * Spaces that look like another one, the blank Braille pattern, and marks on top of four others, which
 * cover the lines above. They are part of ordinary writing, so only what a person approves shows them.
 */
const LOOKALIKES = /(?! )\p{Zs}|\u2800|(?<=\p{M}{4})\p{M}/gu;

/** Like `escapeJson`, for arguments that a person approves: blanks that look like a space are escapes, too. */
export function escapeArguments(json: string): string {
  const escaped = escapeJson(json);
  return PLAIN.test(escaped) ? escaped : escaped.replaceAll(LOOKALIKES, jsonEscape);
}

/** JSON escapes UTF-16 units. */
function jsonEscape(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`;
  }).join('');
}

/** Like `JSON.stringify`, for output that people may read. */
export function visibleJson(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent) ?? 'null');
}

const SHOWN_CHARACTERS = 60;
const PROBLEM_CHARACTERS = 2_000;

/** Returns a value for an error message: JSON, cut to 60 characters. */
export function show(value: unknown): string {
  const json = jsonText(value);
  return wellFormed(
    shorten(json === undefined ? typeof value : escapeJson(json), SHOWN_CHARACTERS + 1),
  );
}

/** Returns the JSON of a value; undefined if it has none. Never throws. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/**
 * Returns a problem for a failure of the workflow, cut to 2,000 characters. It may quote input of
 * any length, and a lone surrogate in a failure would end the worker's process.
 */
export function problemText(problem: string): string {
  return wellFormed(shorten(problem, PROBLEM_CHARACTERS + 1));
}

/** Formats a number with its noun: `1 file`, `2 files`. */
export function formatCount(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}

/** A hundred years in milliseconds: the server takes no longer timer. */
export const MAX_DURABLE_MS = 100 * 365 * 24 * 60 * 60_000;

/** The units that durations are read in, from the largest, with their words. */
const UNITS = [
  { ms: 604_800_000, words: ['w', 'week', 'weeks'] },
  { ms: 86_400_000, words: ['d', 'day', 'days'] },
  { ms: 3_600_000, words: ['h', 'hr', 'hrs', 'hour', 'hours'] },
  { ms: 60_000, words: ['m', 'min', 'mins', 'minute', 'minutes'] },
  { ms: 1_000, words: ['s', 'sec', 'secs', 'second', 'seconds'] },
  { ms: 1, words: ['ms', 'millisecond', 'milliseconds'] },
] as const;

/** A duration: ms, or words such as '30 seconds', '2 days', '90 s', or '15m'. */
export type Duration = number | `${number}${'' | ' '}${(typeof UNITS)[number]['words'][number]}`;

/** A number with its unit, at the beginning of a text. */
const PART = /^(\d{1,20}(?:\.\d{1,20})?) ?([a-z]+) ?/;

/**
 * Returns the milliseconds of a duration as people write it: `30s`, `90 s`, `2 hours`,
 * `1 h 30 min`, `1.5d`, or `hour` for one of it. Null for any other text, and for more than a
 * hundred years.
 */
export function parseDuration(text: string): number | null {
  const ms = readDuration(text);
  return ms !== null && ms <= MAX_DURABLE_MS ? ms : null;
}

/** Like `parseDuration`, without a maximum. */
export function readDuration(text: string): number | null {
  const given = text.trim().toLowerCase();
  const whole = unitOf(given);
  // A letter alone is more likely a mistake than one of a unit.
  if (whole !== undefined && given.length > 2) return whole.ms;
  let [rest, total, before] = [given, 0, Number.POSITIVE_INFINITY];
  do {
    const [part = '', count = '', word = ''] = PART.exec(rest) ?? [];
    const unit = unitOf(word);
    if (unit === undefined || unit.ms >= before) return null;
    rest = rest.slice(part.length);
    before = unit.ms;
    total += Number(count) * unit.ms;
  } while (rest !== '');
  return Math.round(total);
}

function unitOf(word: string): (typeof UNITS)[number] | undefined {
  return UNITS.find(({ words }) => words.some((one) => one === word));
}

/** Returns the milliseconds of a `Duration`; `NaN` for any other value. */
export function toMs(duration: unknown): number {
  if (typeof duration === 'number') return duration;
  return (typeof duration === 'string' ? parseDuration(duration) : null) ?? Number.NaN;
}

/** The units that durations are shown in: seconds, the symbol, and the word if it stands alone. */
const SHOWN = [
  [86_400, 'd', 'day'],
  [3_600, 'h', 'hour'],
  [60, 'min', 'min'],
  [1, 's', 's'],
] as const;

/**
 * Formats milliseconds in at most two units: `0.4 s`, `2.0 s`, `90 s`, `2 min 5 s`, `1 hour`,
 * `36 hours`, `2 days`. `as`: `exact` for a time that a person has set (`20 ms`, `2 s`), `rounded`
 * for whole seconds and one unit (`2 min`); default: a time that was measured.
 */
export function formatDuration(
  ms: number,
  { as = 'measured' }: { readonly as?: 'measured' | 'exact' | 'rounded' } = {},
): string {
  const exact = Math.max(0, ms) / 1_000;
  if (as === 'measured' && exact < 9.95) return `${exact.toFixed(1)} s`;
  if (as === 'exact' && exact < 60 && !Number.isInteger(exact)) {
    return exact < 1 ? `${ms} ms` : `${exact} s`;
  }
  const seconds = Math.round(exact);
  // Less than two of a unit is shown in the smaller unit, unless it is exactly one.
  const at = SHOWN.findIndex(([size]) => seconds >= 2 * size || seconds === size || size === 1);
  const [[size, symbol, word] = SHOWN[3], smaller] = SHOWN.slice(at);
  const count = as === 'rounded' ? Math.round(seconds / size) : Math.floor(seconds / size);
  const rest = smaller === undefined ? 0 : Math.floor((seconds % size) / smaller[0]);
  if (as !== 'rounded' && smaller !== undefined && rest > 0) {
    return `${count} ${symbol} ${rest} ${smaller[1]}`;
  }
  return `${count} ${word === symbol || count === 1 ? word : `${word}s`}`;
}

/** Formats the time between two firings: `every hour`, `every 90 s`. */
export function formatInterval(ms: number): string {
  return `every ${formatDuration(ms, { as: 'exact' }).replace(/^1 (?=[a-z]{3})/, '')}`;
}

/** Tokens of a message in addition to its text: role, separators, and ids. */
const TOKENS_PER_TEXT = 4;
const ASCII_PER_TOKEN = 3;

/**
 * Estimated tokens of an attachment: more than providers count for a typical image or one or two
 * pages of a file.
 */
export const TOKENS_PER_ATTACHMENT = 1_500;

/**
 * Estimates the tokens of a text without a tokenizer: one per three ASCII characters, and one per
 * other character. The estimate is high, so a call rarely exceeds its reservation.
 */
export function estimateTokens(text: string): number {
  // oxlint-disable-next-line no-control-regex -- the class is all of ASCII
  const other = text.length - text.replaceAll(/[^\u0000-\u007f]/g, '').length;
  return TOKENS_PER_TEXT + other + Math.ceil((text.length - other) / ASCII_PER_TOKEN);
}

/** Media types that can be detected by their first bytes. */
type MediaType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'application/pdf';

/** The bytes (as Latin-1) of each type, by offset. */
const MAGIC: readonly (readonly [MediaType, readonly (readonly [number, string])[]])[] = [
  ['image/png', [[0, '\x89PNG\r\n\x1a\n']]],
  ['image/jpeg', [[0, '\xff\xd8\xff']]],
  ['image/gif', [[0, 'GIF87a']]],
  ['image/gif', [[0, 'GIF89a']]],
  [
    'image/webp',
    [
      [0, 'RIFF'],
      [8, 'WEBP'],
    ],
  ],
  ['application/pdf', [[0, '%PDF-']]],
];

/** Number of bytes that `detectMediaType` reads. */
export const MAGIC_BYTES = 12;

/** Returns the media type of bytes, regardless of a name or a header; null if it is unknown. */
export function detectMediaType(bytes: Uint8Array): MediaType | null {
  const head = String.fromCharCode(...bytes.subarray(0, MAGIC_BYTES));
  const found = MAGIC.find(([, marks]) => marks.every(([at, mark]) => head.startsWith(mark, at)));
  return found?.[0] ?? null;
}

/** Returns whether a name or address, an IPv6 one also in brackets, reaches only this machine itself. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare);
}

/** A word that a shell reads as it is. A `=` or `~` at the start is replaced by some shells. */
const SAFE_WORD = /^[\w./:@+-][\w./:@=+-]*$/;
/** Characters that stand for themselves in a format of `printf` within double quotes. */
const NOT_LITERAL = /^-|[^\w ./:@=+,-]/gu;

/**
 * Returns a word quoted for a POSIX shell. The result is one line of visible characters: a word with
 * a line break or a hidden character becomes a `printf` with octal escapes.
 */
export function shellWord(word: string): string {
  if (SAFE_WORD.test(word)) return word;
  if (printable(word) === word && !/[\n\t]/.test(word)) {
    return `'${word.replaceAll("'", String.raw`'\''`)}'`;
  }
  // `$(…)` drops line breaks at the end.
  let length = word.length;
  while (word[length - 1] === '\n') length -= 1;
  const end = word.length - length;
  const format = word.slice(0, length).replaceAll(NOT_LITERAL, octal);
  return `"$(printf '${format}')"${String.raw`$'\n'`.repeat(end)}`;
}

function octal(character: string): string {
  return utf8(character.codePointAt(0) ?? 0)
    .map((byte) => `\\${byte.toString(8).padStart(3, '0')}`)
    .join('');
}

/** Returns the bytes of a character. There is no `TextEncoder` in a workflow. */
function utf8(code: number): readonly number[] {
  const tail = (shift: number): number => 0x80 | ((code >> shift) & 0x3f);
  if (code < 0x80) return [code];
  if (code < 0x800) return [0xc0 | (code >> 6), tail(0)];
  if (code < 0x10000) return [0xe0 | (code >> 12), tail(6), tail(0)];
  return [0xf0 | (code >> 18), tail(12), tail(6), tail(0)];
}

/** A command with its operands, such as ids, and its options with their values. */
interface ShellCommand {
  /** Written as it is. */
  readonly program: string;
  readonly operands: readonly string[];
  readonly options: readonly string[];
}

/**
 * Returns a command line for a POSIX shell, in which every operand and option is one word. Options
 * come first if an operand looks like one.
 */
export function shellLine({ program, operands, options }: ShellCommand): string {
  const words = operands.some((operand) => operand.startsWith('-'))
    ? [...options, '--', ...operands]
    : [...operands, ...options];
  return [program, ...words.map(shellWord)].join(' ');
}

/** Returns a text without its percent escapes; as it is if they are not UTF-8. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
