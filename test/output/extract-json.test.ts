import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { extractJson } from '../../src/output/extract-json.js';

function problemOf(text: string): string {
  const extracted = extractJson(text);
  if (extracted.ok) throw new Error(`took ${JSON.stringify(extracted.value)}`);
  return extracted.problem;
}

/** Generates text without JSON. */
const prose = fc.stringMatching(/^[A-Za-z0-9 .,:;!?()\n'*_-]{0,60}$/);
const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })).filter(isPlain);

function isPlain(value: unknown): boolean {
  return !/__proto__|constructor/.test(JSON.stringify(value));
}

describe('extractJson', () => {
  it.each([
    ['a bare object', '{"a":1}', { a: 1 }],
    ['surrounding white space', '\uFEFF \n{"a":1}\n', { a: 1 }],
    ['a bare array', '[1,"x"]', [1, 'x']],
    ['a bare text', '"yes"', 'yes'],
    ['null', 'null', null],
    ['an object that was encoded twice', '"{\\"a\\":1}"', { a: 1 }],
    ['a text that only begins like one', '"{no"', '{no'],
    ['a fence', '```json\n{"a":1}\n```', { a: 1 }],
    ['a fence of another word', '~~~ JSON5 title="x"\n{"a":1}\n~~~', { a: 1 }],
    ['a fence that is never closed', 'Here:\n```\n{\n  "a": 1\n}', { a: 1 }],
    ['a fence on one line', '```json {"a":1}```', { a: 1 }],
    ['prose around', 'Sure. {"a":1}. Anything else?', { a: 1 }],
    ['prose with braces', 'Of {a, b} I take {"a":1} (see {c}).', { a: 1 }],
    ['prose with half-open intervals', 'In [0, 1) I take {"a":1}', { a: 1 }],
    ['a citation after it', '{"a":1} as in [1]', { a: 1 }],
    ['an array without an object', 'They are ["x","y"].', ['x', 'y']],
    ['the last of several', '{"a":1} or rather {"a":2}', { a: 2 }],
    ['the one in the fence', '{"a":1}\n```json\n{"a":2}\n```\nwhere {"a":3} is wrong', { a: 2 }],
    ['the last fence', '```\n{"a":1}\n```\n```\n{"a":2}\n```', { a: 2 }],
    ['an object before an array', '```js\n[1,2]\n```\n{"a":1}', { a: 1 }],
    ['an invalid draft before it', 'As {"a": <number>}: {"a":1}', { a: 1 }],
    ['braces and quotes in texts', 'x {"a":"}] \\" {[ ```"} y', { a: '}] " {[ ```' }],
    ['an unpaired quote before', 'The 5" disk: {"a":"x}"}', { a: 'x}' }],
  ])('reads %s', (_label, text, value) => {
    expect(extractJson(text)).toEqual({ ok: true, value });
  });

  it.each([
    ['a truncated answer after an example', '{"a":1} becomes {"a":2,"b'],
    ['an invalid answer after an example', '```\n{"a":1}\n```\n{"a":2,}'],
    ['the parts of a truncated list', '[{"a":1},{"a":2},{"a"'],
    ['the parts of a truncated object', '{"list":[{"a":1},{"a":2}],'],
    ['the parts of an invalid object', '{"a":{"b":1},oops}'],
    ['the parts of a text that is not JSON', '{items: [{"a":1}]} {\'list\': {"a":1}}'],
    ['the parts of a truncated text that is not JSON', '{items: {"a":1},'],
    ['what a bare quote cuts off', '{"a":"he said "}" and","b":{"c":1}}'],
    ['an array before a truncated array', '["a"] and ["b","c'],
  ])('rejects %s', (_label, text) => {
    expect(problemOf(text)).toMatch(/^The answer is not JSON: .* Send one complete JSON value/);
  });

  it.each([
    ['{"a":1,}', 'character "}" at position 7 is wrong, in "{\\"a\\":1,}"; expected a key in'],
    ["{'a':1}", 'character "\'" at position 1 is wrong, in "{\'a\':1}"; expected a key in double'],
    [
      'so {"a":tru}',
      'character "t" at position 8 is wrong, in "so {\\"a\\":tru}"; expected a value',
    ],
    ['{"a":[1 2]}', 'at position 8 is wrong, in "{\\"a\\":[1 2]}"; expected "," or "]"'],
    ['{"a":"x\ny"}', 'character "\\n" at position 7 is wrong'],
    ['{"a":"x\ny"}', 'expected the closing quote (in a text, line breaks are \\n'],
    ['{"a":{"b":1}', 'it ends too early, after 12 characters'],
    ['', 'The answer is empty.'],
    ['I am sorry.', 'There is no JSON in the answer, which begins with "I am sorry."'],
    ['{"a":1,"\\u0061":2}', 'the key "a" occurs twice in one object'],
    ['{"x":[{"__proto__":{"admin":true}}]}', 'the key "__proto__" is refused'],
    ['{"constructor":{"prototype":1}}', 'the key "constructor.prototype" is refused'],
    ['1e999', 'the number 1e999 cannot be kept exactly'],
    [`${'['.repeat(65)}${']'.repeat(65)}`, 'a value is nested deeper than 64 levels'],
  ])('describes the fault in %j, its position, and the fix', (text, expected) => {
    expect(problemOf(text)).toContain(expected);
    expect(problemOf(text)).toContain('Send one complete JSON value and nothing else.');
  });

  it('accepts equal keys in different objects', () => {
    const value = { a: [{ a: 'a' }, { a: 'a' }], b: { a: ':' } };
    expect(extractJson(JSON.stringify(value))).toEqual({ ok: true, value });
  });

  it.each([
    '{',
    '[',
    '[{',
    '{"',
    '{"a":',
    '{"a":[',
    '{"a":}',
    '{a',
    '{a:',
    '{x}',
    '{ ',
    '[[}',
    '"',
    '{"a":"\\',
    '\\"[',
    '"\\',
    '```\n',
    '```json\n{}\n```\n',
    '{"a":1}',
    '"\n{',
    '[-1',
    '{"a"\t',
  ])('reads a million characters of %j in linear time', (piece) => {
    const extracted = extractJson(piece.repeat(1e6 / piece.length));
    expect(extracted.ok || extracted.problem.length < 500).toBe(true);
  });

  it('finds any object within any prose, fenced or not', () => {
    const fence = fc.constantFrom(['', ''], ['\n```json\n', '\n```\n'], ['\n~~~~\n', '']);
    fc.assert(
      fc.property(prose, object, fence, prose, (before, value, [open, close], after) => {
        fc.pre(close !== '' || open === '' || !after.includes('~~~'));
        for (const json of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
          const extracted = extractJson(`${before}${open}${json}${close}${after}`);
          expect(extracted).toEqual({ ok: true, value: JSON.parse(json) as unknown });
        }
      }),
    );
  });

  it('rejects an object that is truncated anywhere', () => {
    fc.assert(
      fc.property(prose, object, fc.nat(), (before, value, seed) => {
        const json = JSON.stringify(value);
        const cut = json.slice(0, 1 + (seed % (json.length - 1)));
        expect(extractJson(before + cut).ok).toBe(false);
      }),
    );
  });

  it('returns only values of the text, for any text', () => {
    const piece = fc.oneof(
      fc.json({ maxDepth: 2 }),
      fc.string(),
      fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', '\n', '```json\n', '\n```\n', '~~~'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        const extracted = extractJson(text);
        if (!extracted.ok) expect(extracted.problem.length).toBeLessThan(500);
        else expect(isInside(extracted.value, text)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

/** Returns true if a part of the text is this value as JSON. */
function isInside(value: unknown, text: string): boolean {
  const json = JSON.stringify(value);
  if (reads(text.trim(), json)) return true;
  const starts = [...text.matchAll(/[[{]/g)].map(({ index }) => index);
  const ends = [...text.matchAll(/[\]}]/g)].map(({ index }) => index + 1);
  return starts.some((start) => ends.some((end) => reads(text.slice(start, end), json)));
}

function reads(text: string, json: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === json || (typeof value === 'string' && reads(value, json));
  } catch {
    return false;
  }
}
