import { readFileSync } from 'node:fs';
import { assert, constantFrom, integer, array, property } from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { learnSecrets } from '../../src/secrets/known.js';
import {
  redactJson,
  redactJsonText,
  createStreamRedactor,
  redact,
} from '../../src/secrets/redact.js';
import { CANARIES, CANARY_NAMES, canariesIn, formsOf, spreadFormsOf } from '../support/canaries.js';

beforeAll(() => learnSecrets({ env: CANARIES, names: CANARY_NAMES }));

const SPREAD = Object.keys(spreadFormsOf('x'));
/** The secrets themselves: of a URL, only the user info is one. */
const SECRETS = Object.entries(CANARIES).map(([name, value]): [string, string] => [
  name,
  name === 'CANARY_DATABASE_URL' ? 'app:cnry%21Pw7-kq' : value.trim(),
]);
/** What a stream shows of a key before it holds the text back: characters of base64, or fewer. */
const SHOWN_COMPACT = 4;
/** Characters of the key, in an encoding that writes them apart. */
const SHOWN_SPREAD = 6;

function mostShown(form: string, text: string, value: string): number {
  if (!SPREAD.includes(form)) return SHOWN_COMPACT;
  return SHOWN_SPREAD * Math.ceil(text.length / value.length);
}

/** How much of a text is left apart from marks and from what an empty secret leaves. */
function leftOf(shown: string): number {
  return shown.replaceAll(/\[redacted[^\]]*\]/g, '').length;
}

describe.each(SPREAD)('a secret as %s', (form) => {
  test.each(SECRETS)('is hidden: %s', (name, value) => {
    const text = spreadFormsOf(value)[form] ?? '';
    const shown = redact(`before ${text} after`);
    expect(shown).toContain(`[redacted ${name}]`);
    expect(leftOf(shown) - 'before  after'.length).toBeLessThan(44);
    expect(shown).toMatch(/^before .*after$/s);
  });
});

/** Keys of which a part in the middle is secret. */
const KEYS = [
  CANARIES['CANARY_API_KEY'] ?? '',
  CANARIES['CANARY_GITHUB_PAT'] ?? '',
  CANARIES['CANARY_PRIVATE_KEY']?.split('\n')[1] ?? '',
];
const EVERY = (text: string): Record<string, string> => ({
  ...formsOf(text),
  ...spreadFormsOf(text),
});

test('a middle part of 24 or more characters is hidden in every form', () => {
  for (const key of KEYS) {
    for (let from = 1; from + 24 <= key.length; from += 1) {
      for (const [form, text] of Object.entries(EVERY(key.slice(from, from + 24)))) {
        expect([form, from, redact(`a ${text} b`)]).toEqual([
          form,
          from,
          expect.stringContaining('[redacted CANARY_'),
        ]);
      }
    }
  }
});

test('a short part in the middle stays, and so do lists, hashes, and prose', () => {
  const key = KEYS[0] ?? '';
  const texts = [
    key.slice(10, 22),
    JSON.stringify(Array.from({ length: 300 }, (_, at) => at)),
    '550e8400-e29b-41d4-a716-446655440000 2026-11-25T14:45:17Z 00:1a:2b:3c:4d:5e',
    'a%20b &amp; c &#169; \\u00e9 \\x41 \0 "\\n" 100%, &c; &#; \\u{110000000}',
  ];
  for (const text of texts) expect(redact(text)).toBe(text);
});

test('JSON stays JSON when bytes in it are a secret', () => {
  const bytes = Buffer.from(KEYS[0] ?? '');
  const value = {
    buffer: bytes.toJSON(),
    list: [1, 2, [7, ...bytes, 8]],
    typed: Object.fromEntries(bytes.entries()),
    texts: [...bytes].map((byte) => byte.toString(16)),
    other: [1, 2, 3],
  };
  const mark = '[redacted CANARY_API_KEY]';
  const safe = {
    buffer: { type: 'Buffer', data: [mark] },
    list: [1, 2, [7, mark, 8]],
    typed: mark,
    texts: [mark],
    other: [1, 2, 3],
  };
  expect(redactJson(value)).toEqual(safe);
  expect(JSON.parse(redactJsonText(JSON.stringify(value)))).toEqual(safe);
  expect(JSON.parse(redactJsonText(JSON.stringify([...bytes])))).toEqual([mark]);
});

/** Sends a text through a redactor in parts, and returns what is shown before and at its end. */
function streamed(text: string, cuts: readonly number[]): { early: string; all: string } {
  const redactor = createStreamRedactor();
  const places = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])];
  places.sort((a, b) => a - b);
  let early = '';
  for (const [at, from] of places.entries())
    early += redactor.push(text.slice(from, places[at + 1]));
  return { early, all: early + redactor.end() };
}

const cuts = array(integer({ min: 0, max: 10_000 }), { maxLength: 60 });

test('a stream shows at most four characters of a key, or six in encodings that write them apart, however it is split', () => {
  const forms = Object.keys(EVERY('x'));
  const canary = constantFrom(...SECRETS);
  assert(
    property(canary, constantFrom(...forms), cuts, ([name, value], form, splits) => {
      const text = EVERY(value)[form] ?? '';
      const { all } = streamed(`before ${text} after`, splits);
      expect(canariesIn(all)).toEqual([]);
      expect(all).toContain(`[redacted ${name}]`);
      expect(all).toMatch(/^before .* after$/s);
      const whole = leftOf(redact(`before ${text} after`));
      const most = whole + mostShown(form, text, value);
      expect([form, all, leftOf(all) <= most]).toEqual([form, all, true]);
    }),
    { numRuns: 3_000, seed: 29 },
  );
});

test('a stream that ends within a key, or is split at each character, shows nothing of it', () => {
  for (const [name, value] of SECRETS) {
    for (const [form, text] of Object.entries(EVERY(value))) {
      const each = Array.from({ length: text.length + 1 }, (_, at) => at);
      const { early, all } = streamed(text, each);
      expect([name, form, canariesIn(all)]).toEqual([name, form, []]);
      expect([name, form, all]).toEqual([name, form, expect.stringContaining('[redacted ')]);
      const allowed = leftOf(redact(text)) + mostShown(form, text, value);
      expect([form, all, leftOf(early) <= allowed, leftOf(all) <= allowed]).toEqual([
        form,
        all,
        true,
        true,
      ]);
    }
  }
});

test('a stream without secrets is shown unchanged, and soon', () => {
  const words = constantFrom(
    'The key sk-',
    'pro',
    'ject ',
    'cnry',
    ' 73 6b',
    '115,107,',
    '[1, 2, 3]',
    '&#115;',
    '\\u00',
    '%2',
    '\n\n',
    '    ',
    'ghp_',
    'postgres://',
    'ключ ',
    '0x73',
    'Basic ',
    '"\\"',
    '=',
  );
  assert(
    property(array(words, { maxLength: 80 }), cuts, (parts, splits) => {
      const text = parts.join('').concat('. And this is how it ends.');
      const { early, all } = streamed(text, splits);
      expect(all).toBe(redact(text));
      expect(early.length).toBeGreaterThanOrEqual(redact(text).length - 8);
    }),
    { numRuns: 2_000, seed: 29 },
  );
  const long = createStreamRedactor();
  for (let at = 0; at < 400; at += 1) long.push('sk-p');
  expect(long.held).toBeLessThan(1_000);
});

test('a secret is found wherever it stands in whatever text', () => {
  const around = constantFrom(
    'The order was late, and the customer wrote twice. ',
    '{"id":17,"at":"2026-11-25T14:45:17Z","total":1.25,"list":[1, 22, 333]}',
    Buffer.from('some other bytes, which are no secret').toString('base64'),
    Buffer.from('some other bytes').toString('hex'),
    '-'.repeat(70),
    ' '.repeat(90),
    '\\u00e9 %20 &amp; \0',
    'ключ 秘密 ',
    '\\n\\\\n\n',
    '0x0x',
  );
  const text = array(around, { maxLength: 12 }).map((parts) => parts.join(''));
  const forms = Object.keys(EVERY('x'));
  const canary = constantFrom(...SECRETS);
  assert(
    property(text, canary, constantFrom(...forms), text, (before, [name, value], form, after) => {
      const shown = redact(`${before}|${EVERY(value)[form]}|${after}`);
      expect([form, shown]).toEqual([form, expect.stringContaining(`[redacted ${name}]`)]);
      expect([shown.slice(0, before.length), shown.slice(shown.length - after.length)]).toEqual([
        before,
        after,
      ]);
    }),
    { numRuns: 3_000, seed: 29 },
  );
});

test('of ordinary prose, a stream holds back eight characters at most, and almost none on average', () => {
  const names = ['agents', 'operations', 'approvals'];
  const pages = names.map((name) =>
    readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8'),
  );
  const prose = pages.join('').replaceAll(/```.*?```/gs, '');
  for (const size of [1, 4]) {
    const redactor = createStreamRedactor();
    const held: number[] = [];
    let shown = '';
    for (let at = 0; at < prose.length; at += size) {
      shown += redactor.push(prose.slice(at, at + size));
      held.push(redactor.held);
    }
    expect(shown + redactor.end()).toBe(prose);
    expect(Math.max(...held)).toBeLessThanOrEqual(8);
    expect(held.reduce((sum, one) => sum + one, 0) / held.length).toBeLessThan(0.1);
  }
});

test('the words of ordinary prose are shown at once', () => {
  const page = readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8');
  const words = page.match(/[a-z]{3,}/gi) ?? [];
  expect(words.length).toBeGreaterThan(500);
  const held = words.filter((word) => {
    const redactor = createStreamRedactor();
    redactor.push('I ');
    return redactor.push(word) !== word;
  });
  // A word in the middle of a secret that only its start reveals is no start.
  expect(createStreamRedactor().push('secret')).toBe('secret');
  expect(new Set(held).size).toBeLessThan(new Set(words).size / 50);
});
