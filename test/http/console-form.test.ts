import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseForeignJson } from '../../src/core/text/json.js';
import { escapeJson, printable } from '../../src/core/text/text.js';
import { anyCharacter } from '../support/any-string.js';

interface Field {
  readonly name: string;
  readonly isNumber: boolean;
  readonly isNeeded: boolean;
  readonly choices: readonly (readonly [unknown, string])[] | null;
  readonly firstText: string;
}

interface FormModule {
  readonly fieldsOf: (form: object) => readonly Field[];
  readonly readFields: (form: object, textsOf: (at: number) => readonly string[]) => object;
  readonly parseJson: (text: string, problem: string) => unknown;
}

interface PartsModule {
  readonly visible: (text: string) => string;
  readonly visibleJson: (json: string) => string;
  readonly pretty: (text: string) => string;
}

const moduleOf = async (name: string): Promise<unknown> =>
  await import(new URL(`../../console/${name}.js`, import.meta.url).href);
const { fieldsOf, parseJson, readFields } = (await moduleOf('form')) as FormModule;
const { pretty, visible, visibleJson } = (await moduleOf('parts')) as PartsModule;

test('a field that may be null is a field of its other type', () => {
  const optional = (type: string) => ({ anyOf: [{ type }, { type: 'null' }], default: null });
  const form = {
    type: 'object',
    properties: { city: optional('string'), euros: optional('integer'), sure: optional('boolean') },
  };
  const [city, euros, sure] = fieldsOf(form);
  expect([city?.choices, euros?.choices, euros?.isNumber]).toEqual([null, null, true]);
  expect(sure?.choices?.map(([, title]) => title)).toEqual(['yes', 'no']);
  const texts = [['Oslo'], ['20'], ['true']];
  expect(readFields(form, (at) => texts[at] ?? [])).toEqual({
    city: 'Oslo',
    euros: 20,
    sure: true,
  });
  expect(readFields(form, () => [''])).toEqual({});
});

test.each([
  { type: 'array', default: null },
  { type: 'array', items: null, default: 'a' },
  { enum: [{ toString: 1, valueOf: 1 }, null], enumNames: {} },
  { default: { toString: 1, valueOf: 1 } },
  { anyOf: [null, 1, {}], oneOf: {} },
  { anyOf: [{ const: null }, { const: 'b', title: 7 }] },
  { type: [null, 'null', 5], title: {}, description: [] },
  'x',
  null,
])('the field %j of a hostile server is shown, and takes nothing else with it', (field) => {
  for (const required of [undefined, null, 'a', { includes: true }]) {
    const form = { type: 'object', properties: { a: field, b: { type: 'string' } }, required };
    const [, other] = fieldsOf(form);
    expect(other).toMatchObject({ name: 'b', isNeeded: false });
    expect(readFields(form, (at) => (at === 1 ? ['text'] : []))).toEqual({ b: 'text' });
  }
});

describe('the numbers that a person writes', () => {
  test.each([
    '{"account": 12345678901234567890}',
    '[9007199254740993]',
    '{"a": "1e400", "b": [1e400]}',
    '-9007199254740993',
    '1e-400',
    '{"text": "\\"12345678901234567890", "account": 12345678901234567890}',
    `[${'9'.repeat(80)}]`,
    '{"euros": 12.5, "text": "12345678901234567890", "count": 9007199254740991}',
    '[0.1234567890123456789, -0, 0.0, 1e3, 100000000000000000000]',
    '"9007199254740993"',
  ])('are taken or refused as by the server: %s', (text) => {
    const read = parseForeignJson(text);
    const given = () => parseJson(text, 'expected JSON');
    if (read.ok) expect(given()).toEqual(JSON.parse(text));
    else expect(given).toThrow(read.problem);
  });

  test('are refused in a field, with its title', () => {
    const form = { properties: { account: { type: 'integer', title: 'Account' } } };
    expect(readFields(form, () => ['9007199254740991'])).toEqual({ account: 9007199254740991 });
    expect(() => readFields(form, () => ['9007199254740993'])).toThrow(
      'Account: the number 9007199254740993 cannot be kept exactly',
    );
  });

  test('are shown as they are in a result', () => {
    expect(pretty('{"account":12345678901234567890}')).toBe('{"account":12345678901234567890}');
    expect(pretty('{"account":123}')).toBe('{\n  "account": 123\n}');
  });
});

describe('hidden characters', () => {
  const writing = '👩‍👩‍👧 ❤️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 می‌خواهم क्‍ष 葛󠄀城 ᠮᠣᠩᠭᠣᠯ᠋ ∩︀ e\u0301 \u0601';
  const anyText = fc.string({
    unit: fc.oneof(
      anyCharacter,
      fc.constantFrom(...Array.from(writing), '\ud83d', '\u{e0141}', '\u3164'),
    ),
    maxLength: 40,
  });
  /** The console writes all escapes in one form. */
  const asConsole = (text: string): string =>
    printable(text).replaceAll(/\\u([\da-f]{4})/g, (_, code: string) => {
      return `\\u{${Number.parseInt(code, 16).toString(16)}}`;
    });

  test('are those of the server', () => {
    expect(visible(writing)).toBe(writing);
    expect(visible('a\u202e\u3164\u115f\ufe00\ufff9\ue000\u{e0100}\r\n')).toBe(
      'a\\u{202e}\\u{3164}\\u{115f}\\u{fe00}\\u{fff9}\\u{e000}\\u{e0100}\n',
    );
    fc.assert(
      fc.property(anyText, (text) => {
        fc.pre(!text.includes('\\'));
        expect(visible(text)).toBe(asConsole(text));
        const json = JSON.stringify({ text });
        expect(visibleJson(json)).toBe(escapeJson(json));
      }),
      { numRuns: 2_000 },
    );
  });
});
