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
