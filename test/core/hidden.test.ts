import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  countHidden,
  escapeArguments,
  escapeJson,
  printable,
  visibleJson,
  withoutHidden,
  show,
} from '../../src/core/text/text.js';
import { visible, visibleMessage } from '../../src/core/state/summaries.js';
import { anyCharacter } from '../support/any-string.js';

const tag = (text: string): string =>
  Array.from(text, (each) => String.fromCodePoint(0xe0000 + (each.codePointAt(0) ?? 0))).join('');

/** Characters that are invisible or that control a terminal, by kind. */
const HOSTILE: readonly (readonly [string, string])[] = [
  ['an escape sequence', '\u001b[2J'],
  ['C1 control sequences', '\u009b31m\u0085'],
  ['a carriage return', 'a\rb'],
  ['a title', '\u001b]0;x\u0007'],
  ['a bidi override', '\u202egnp.exe\u2069'],
  ['direction marks', '\u200e\u200f\u061c'],
  ['zero-width characters', 'a\u200bb\u2060c\ufeffd'],
  ['joiners in Latin', 'a\u200db\u200cc'],
  ['tags', `x${tag('ignore all')}`],
  ['a flag that spells a message', `\u{1f3f4}${tag('leak')}\u{e007f}`],
  ['variation selectors in a row', '😀\ufe0f\ufe0e\u{e0101}\u{e0120}'],
  ['a variation selector on a letter', 'a\ufe01'],
  ['a row of joiners', 'می\u200c\u200c\u200d'],
  ['line separators', 'a\u2028b\u2029c'],
  ['fillers', '\u3164\u115f\uffa0'],
  ['a soft hyphen', 'pass\u00adword'],
  ['private-use characters', '\ue000\u{f0000}'],
  ['a lone surrogate', '\ud83d'],
];

const LEGITIMATE: readonly (readonly [string, string])[] = [
  ['families, flags, skin tones', '👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🧑🏻‍🤝‍🧑🏿 👁️‍🗨️ 🏃🏽‍♀️‍➡️'],
  ['hearts and keycaps', '❤️ ❤︎ 1️⃣ #️⃣ ©️'],
  ['flags of regions', '🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿 🇩🇪'],
  ['Arabic and Persian', 'مرحبا بالعالم، می‌خواهم ۱۲٪ \u0601'],
  ['Hebrew', 'שָׁלוֹם עוֹלָם'],
  ['Hindi, Bengali and Sinhala', 'क्‍ष র‍্য ශ්‍රී'],
  ['Chinese, Japanese and Korean', '漢字とかな 葛󠄀城 한국어'],
  ['Mongolian', 'ᠮᠣᠩᠭᠣᠯ᠋'],
  ['mathematics', '∩︀ ≤ ∑'],
  ['combining marks', 'e\u0301 ñ Z͑ä'],
];

/** A text without characters that are legitimate only within a sequence. */
const RAW =
  /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\p{Co}\p{Cs}]/u;

describe('hidden characters', () => {
  test.each(HOSTILE)('are shown: %s', (_, text) => {
    expect(countHidden(text)).toBeGreaterThan(0);
    const shown = printable(text);
    expect(countHidden(shown)).toBe(0);
    expect(shown).toMatch(/\\u(?:[\da-f]{4}|\{[\da-f]{5,6}\})/);
    expect(shown).not.toMatch(RAW);
    expect(countHidden(withoutHidden(text))).toBe(0);
    expect(visible(text)).not.toMatch(RAW);
  });

  test.each(HOSTILE)('are escapes in JSON, which is read as the same value: %s', (_, text) => {
    const json = visibleJson({ [text]: [text] }, 2);
    expect(countHidden(json)).toBe(0);
    expect(json).not.toMatch(RAW);
    expect(JSON.parse(json)).toEqual({ [text]: [text] });
    expect(show(text)).not.toMatch(RAW);
  });

  test.each(LEGITIMATE)('are unchanged if they are ordinary writing: %s', (_, text) => {
    expect(countHidden(text)).toBe(0);
    expect(printable(text)).toBe(text);
    expect(withoutHidden(text)).toBe(text);
    expect(visibleJson(text)).toBe(JSON.stringify(text));
  });

  test('are named by their escapes', () => {
    expect(printable('a\u001b[2J\u202e')).toBe('a\\u001b[2J\\u202e');
    expect(printable(tag('A'))).toBe('\\u{e0041}');
    expect(printable('one\r\ntwo\n\tthree')).toBe('one\ntwo\n\tthree');
  });

  const anyText = fc.string({
    unit: fc.oneof(
      anyCharacter,
      fc.constantFrom(...[...HOSTILE, ...LEGITIMATE].flatMap(([, text]) => Array.from(text))),
    ),
    maxLength: 40,
  });

  test('are always replaced, whatever the text is, and plain text never changes', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = printable(text);
        expect(shown).not.toMatch(RAW);
        expect(printable(shown)).toBe(shown);
        expect(printable(withoutHidden(text))).toBe(withoutHidden(text));
        if (countHidden(text) === 0) expect(shown).toBe(text.replaceAll('\r\n', '\n'));
        const json = JSON.stringify({ text });
        expect(JSON.parse(escapeJson(json))).toEqual(JSON.parse(json));
        expect(escapeJson(json)).not.toMatch(RAW);
      }),
      { numRuns: 1_000 },
    );
  });

  test('cannot hide a message: those that remain are never adjacent', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(printable(text)).not.toMatch(
          /(?:\u200c|\u200d|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]){3}/u,
        );
      }),
      { numRuns: 1_000 },
    );
  });

  test('are found fast in a long text', () => {
    const long = `${'😀\u200d'.repeat(200_000)}${'\u202e'.repeat(200_000)}`;
    expect(printable(long).length).toBeGreaterThan(long.length);
  });
});

describe('arguments that a person approves', () => {
  test.each([
    ['a no-break space', 'a\u00a0b', String.raw`a\u00a0b`],
    ['an ideographic space', 'a\u3000b', String.raw`a\u3000b`],
    ['a blank Braille pattern', 'a\u2800b', String.raw`a\u2800b`],
    [
      'marks on four others',
      `a${'\u0301'.repeat(6)}`,
      `a${'\u0301'.repeat(4)}${String.raw`\u0301\u0301`}`,
    ],
  ])('show %s', (_what, text, shown) => {
    expect(escapeArguments(JSON.stringify({ text }))).toBe(`{"text":"${shown}"}`);
    expect(JSON.parse(escapeArguments(JSON.stringify({ text })))).toEqual({ text });
  });

  test.each(['a b', 'é', 'Việt', 'हिन्दी', '日本語'])('leave %j as it is', (text) => {
    expect(escapeArguments(JSON.stringify(text))).toBe(JSON.stringify(text));
  });
});

test('a list of problems has no bullets in one line', () => {
  const problems =
    'no answer fits: The answer is not valid:\n- age: missing\n- name: expected string';
  expect(visibleMessage(problems)).toBe(
    'no answer fits: The answer is not valid: age: missing; name: expected string',
  );
  expect(visibleMessage('a - b')).toBe('a - b');
});
