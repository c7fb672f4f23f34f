import * as fc from 'fast-check';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { TagSet } from '../../src/core/definition/definition.js';
import { parseTags, tags, type TagAnswer } from '../../src/output/parse-tags.js';

const form = tags({
  xml: ['plan', { name: 'answer', required: true }],
  fences: ['json', { name: 'c++', required: true }],
  signals: ['DONE', 'ASK'],
});
const only = {
  plan: tags({ xml: ['plan'] }),
  json: tags({ fences: ['json'] }),
  done: tags({ signals: ['DONE'] }),
};

function answerOf(set: TagSet, text: string): TagAnswer {
  const parsed = parseTags(set, text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.output as unknown as TagAnswer;
}

function problemOf(set: TagSet, text: string): string {
  const parsed = parseTags(set, text);
  if (parsed.ok) throw new Error(`took ${JSON.stringify(parsed.output)}`);
  return parsed.problem;
}

function planTexts(text: string): string[] {
  return (answerOf(only.plan, text).xml['plan'] ?? []).map((element) => element.text);
}

function jsonBlocks(text: string): readonly string[] | undefined {
  return answerOf(only.json, text).fences['json'];
}

describe('tags', () => {
  it('turns names into data, with `required` as declared', () => {
    expect(form).toEqual({
      xml: [
        { name: 'plan', required: false },
        { name: 'answer', required: true },
      ],
      fences: [
        { name: 'json', required: false },
        { name: 'c++', required: true },
      ],
      signals: ['DONE', 'ASK'],
    });
    expectTypeOf(form.xml[0]?.name).toEqualTypeOf<'plan' | 'answer' | undefined>();
    expectTypeOf(form.fences[0]?.name).toEqualTypeOf<'json' | 'c++' | undefined>();
    expectTypeOf(only.done.signals).toEqualTypeOf<readonly 'DONE'[]>();
  });

  it.each([
    [
      { xml: ['1st'] },
      'xml: expected a letter, then letters, digits, "_", "-" or ".", 64 in all, got "1st"',
    ],
    [{ xml: ['a b'] }, 'got "a b"'],
    [{ xml: [{ name: '<a>' }] }, 'got "<a>"'],
    [
      { xml: [7] },
      'tags: xml[0]: expected a name, or { name, required } with true or false, got 7',
    ],
    [{ xml: ['__proto__'] }, 'got "__proto__"'],
    [{ fences: ['__proto__'] }, 'got "__proto__"'],
    [{ fences: ['js x'] }, '1 to 64 characters without spaces and fence marks'],
    [
      { fences: [''] },
      'fences: expected 1 to 64 characters without spaces and fence marks, got ""',
    ],
    [{ signals: ['<DONE>'] }, 'got "<DONE>"'],
    [
      { xml: [{ name: 'a', required: 'yes' }] },
      'xml[0]: expected a name, or { name, required } with true or false, got an object',
    ],
    [
      { xml: ['a', 'a'] },
      'expected different names in `xml` and `signals`, got "a" twice; rename one',
    ],
    [{ xml: ['a'], signals: ['a'] }, 'got "a" twice'],
    [{ fences: ['a', { name: 'a' }] }, 'expected different names in `fences`, got "a" twice'],
    [{ tags: ['a'] }, '"tags" is not an option; the options are xml, fences, signals'],
    [{}, 'expected at least one name in `xml`, `fences`, or `signals`, got none'],
  ])('refuses %j', (options, message) => {
    expect(() => Reflect.apply(tags, undefined, [options]) as unknown).toThrow(`tags: `);
    expect(() => Reflect.apply(tags, undefined, [options]) as unknown).toThrow(message);
  });
});

describe('parseTags', () => {
  it('returns everything declared, and the whole answer', () => {
    const raw = '<plan>\n one\n</plan> <answer lang="en">two</answer> <DONE>\n```c++\nx;\n```';
    expect(parseTags(form, raw)).toEqual({
      ok: true,
      output: {
        raw,
        xml: {
          plan: [{ text: 'one', attributes: {} }],
          answer: [{ text: 'two', attributes: { lang: 'en' } }],
        },
        fences: { json: [], 'c++': ['x;'] },
        signals: { DONE: true, ASK: false },
        unclosed: [],
      },
    });
  });

  it('names all faults at once, and returns what is readable', () => {
    const parsed = parseTags(form, '<plan>go</plan><DONE/>\n```c\nx\n```\n```\ny\n```');
    expect(parsed).toMatchObject({
      ok: false,
      problem: [
        'The answer does not have the required form:',
        '- <answer> is missing: write <answer>…</answer>',
        '- a fenced block c++ is missing (found c, one without a word): ' +
          'open it with ```c++ on a line of its own',
      ].join('\n'),
      output: { xml: { plan: [{ text: 'go' }], answer: [] }, signals: { DONE: true } },
    });
  });

  it.each([
    ['several, in order', '<plan>a</plan>b<plan>c</plan>', ['a', 'c']],
    ['several lines', '<plan>\na\n\n  b\n</plan>', ['a\n\n  b']],
    ['an empty one', '<plan></plan><plan/>', ['', '']],
    ['tags of other names inside', '<plan><b>x</b> <c></plan>', ['<b>x</b> <c>']],
    ['the same tag inside', '<plan>a<plan>b</plan>c<plan/></plan>', ['a<plan>b</plan>c<plan/>']],
    ['an extra closing tag', 'x</plan><plan>a</plan></plan>', ['a']],
    ['a tag that prose mentions', 'In <plan> I say: <plan>a</plan>', ['a']],
    ['spaces inside the tags', '<plan >a</plan\n>', ['a']],
    ['longer names', '<planner>a</planner><plan-b>c</plan-b><plan>d</plan>', ['d']],
    ['other capitals', '<PLAN>a</PLAN><plan>b</plan>', ['b']],
    ['no tag whose attribute contains one', '<plan a="<b>">x</plan><plan>y</plan>', ['y']],
    ['text that is not a tag', '1 < plan, <plan <plan>a</plan>', ['a']],
  ])('reads %s', (_label, text, expected) => {
    expect(planTexts(text)).toEqual(expected);
  });

  it('returns attributes in any notation', () => {
    const text = `<plan a="x > y" b='"' c=1 d data-e = "é" f="">t</plan>`;
    expect(answerOf(only.plan, text).xml['plan']).toEqual([
      { text: 't', attributes: { a: 'x > y', b: '"', c: '1', d: '', 'data-e': 'é', f: '' } },
    ]);
  });

  it('names the tag that is never closed, required or not', () => {
    expect(problemOf(only.plan, 'Well. <plan>half')).toContain(
      '- <plan> at position 6 is never closed: write </plan> after its content',
    );
    expect(problemOf(only.plan, '<plan>a</plan><plan>b')).toContain('<plan> at position 14');
  });

  it.each([
    ['the exact word', '```jsonc\na\n```\n```json\nb\n```\n```json5\nc\n```', ['b']],
    ['attributes after the word', '```json title="x"\na\n```', ['a']],
    ['tildes', '~~~ json\na\n~~~', ['a']],
    ['several', '```json\na\n```\n\n```json\nb\n```', ['a', 'b']],
    ['an empty one', '```json\n```', ['']],
    ['blank lines and indentation', '```json\n\n  a\n\n```', ['\n  a\n']],
    ['a fence that is indented', '1. so\n   ```json\n   {\n     a\n   }\n   ```', ['{\n  a\n}']],
    ['carriage returns', '```json\r\na\r\nb\r\n```\r\n', ['a\r\nb']],
    ['other marks inside', '```json\n~~~\na\n~~~\n```', ['~~~\na\n~~~']],
    ['shorter marks inside', '````json\n```\na\n````', ['```\na']],
    ['a longer closing line', '```json\na\n`````', ['a']],
    ['fences inside', '```json\n```js\na\n```\nb\n```', ['```js\na\n```\nb']],
    ['none of a fence inside', '```md\n```json\na\n```\n```', []],
    ['no marks on a line with words', '```json\na ``` b\n```', ['a ``` b']],
    ['no fence on one line', '```json a```', []],
  ])('reads fences: %s', (_label, text, expected) => {
    expect(jsonBlocks(text)).toEqual(expected);
    expect(answerOf(only.json, text).unclosed).toEqual([]);
  });

  it('reads a fence that is never closed to the end, and reports it', () => {
    const answer = answerOf(only.json, '```json\na\n```\n```json\nb\nc');
    expect(answer.fences).toEqual({ json: ['a', 'b\nc'] });
    expect(answer.unclosed).toEqual(['json']);
    expect(answerOf(only.json, '```json').fences).toEqual({ json: [''] });
    expect(answerOf(only.json, '```json\n').unclosed).toEqual(['json']);
    expect(answerOf(only.json, '```json\na\n```').unclosed).toEqual([]);
  });

  it.each([
    ['<DONE>', true],
    ['all is <DONE/>.', true],
    ['<DONE />', true],
    ['DONE', false],
    ['</DONE>', false],
    ['<done>', false],
    ['<DONE', false],
    ['<DONER>', false],
  ])('reads the signal in %j as %s', (text, expected) => {
    expect(answerOf(only.done, text).signals).toEqual({ DONE: expected });
  });

  it('keeps no output above 256 KiB', () => {
    expect(problemOf(only.done, 'x'.repeat(300_000))).toContain('at most 262144 are accepted');
  });

  it.each([
    '<plan>',
    '</plan>',
    '<plan a="',
    '<plan a=\'<plan a="',
    '<plan ',
    '<plan a=',
    '<',
    '```json\n',
  ])('reads a quarter of a million characters of %j in linear time', (piece) => {
    const set = tags({ xml: ['plan'], fences: ['json'], signals: ['DONE'] });
    const parsed = parseTags(set, piece.repeat(250_000 / piece.length));
    expect(parsed.ok || parsed.problem.length < 500).toBe(true);
  });

  const content = fc.stringMatching(/^[^<`~]{0,80}$/);

  it('finds each content between its own tags and fences, without loss', () => {
    const set = tags({ xml: ['plan'], fences: ['json'], signals: ['DONE'] });
    const part = fc.oneof(
      fc.record({ kind: fc.constant('xml' as const), content }),
      fc.record({ kind: fc.constant('fence' as const), content }),
      fc.record({ kind: fc.constant('prose' as const), content }),
    );
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const raw = parts.map((each) => written(each)).join('\n');
        const answer = answerOf(set, raw);
        const of = (kind: string): string[] =>
          parts.filter((each) => each.kind === kind).map((each) => each.content);
        expect(answer.raw).toBe(raw);
        expect(answer.xml['plan']?.map(({ text }) => text)).toEqual(
          of('xml').map((text) => text.trim()),
        );
        expect(answer.fences['json']).toEqual(of('fence'));
      }),
    );
  });

  it('returns only values of the text, for any text', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom(
        '<plan>',
        '</plan>',
        '<plan',
        ' a="x"',
        '>',
        '/>',
        '\n```',
        'json\n',
        '\n~~~~',
      ),
    );
    const set = tags({
      xml: [{ name: 'plan', required: true }],
      fences: ['json'],
      signals: ['plan2'],
    });
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const raw = pieces.join('');
        const parsed = parseTags(set, raw);
        const answer = parsed.output as unknown as TagAnswer;
        const texts = [
          ...(answer.xml['plan'] ?? []).map(({ text }) => text),
          ...(answer.fences['json'] ?? []).flatMap((block) => block.split('\n')),
        ];
        expect(texts.every((text) => raw.includes(text))).toBe(true);
        if (parsed.ok) expect(raw).toMatch(/<plan(>|\s|\/)/);
      }),
      { numRuns: 500 },
    );
  });
});

function written({ kind, content }: { readonly kind: string; readonly content: string }): string {
  if (kind === 'xml') return `<plan>${content}</plan>`;
  return kind === 'fence' ? `\`\`\`json\n${content}\n\`\`\`` : content;
}
