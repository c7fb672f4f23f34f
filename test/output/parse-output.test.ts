import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ParseError, parseAnswer, type ParseFunction } from '../../src/output/parse-output.js';
import { repairText } from '../../src/core/run/on-reply.js';
import { tags } from '../../src/output/parse-tags.js';
import { schemaAndValue } from './support.js';
import { anyString } from '../support/any-string.js';

function reader(parse: ParseFunction): {
  readonly type: 'function';
  readonly parse: ParseFunction;
} {
  return { type: 'function', parse };
}

describe('parseAnswer', () => {
  it('extracts JSON from an answer, then checks it', async () => {
    const parser = { type: 'zod', schema: z.object({ a: z.int() }) } as const;
    expect(await parseAnswer(parser, 'So:\n```json\n{"a":1}\n```')).toEqual({
      ok: true,
      output: { a: 1 },
    });
    expect(await parseAnswer(parser, '{"a":"x"}')).toMatchObject({
      ok: false,
      problem: expect.stringContaining('- a: expected number, got "x"'),
    });
    expect(await parseAnswer(parser, '{"a":')).toEqual({
      ok: false,
      problem: expect.stringContaining('it ends too early, after 5 characters'),
    });
  });

  it('reads tags', async () => {
    const parser = { type: 'tags', tags: tags({ xml: ['a'] }) } as const;
    expect(await parseAnswer(parser, '<a>x</a>')).toMatchObject({
      ok: true,
      output: { xml: { a: [{ text: 'x', attributes: {} }] } },
    });
  });

  it('passes a parser the verbatim text and the context of the run', async () => {
    const parser = reader(async (text, { context }) => ({ text, context }));
    expect(await parseAnswer(parser, ' x\n', { context: { tenant: 7 } })).toEqual({
      ok: true,
      output: { text: ' x\n', context: { tenant: 7 } },
    });
    expect(await parseAnswer(parser, '')).toEqual({
      ok: true,
      output: { text: '', context: null },
    });
  });

  it("converts a parser's result to plain JSON of at most 256 KiB", async () => {
    const parser = reader(() => new Map([['n', 10n]]));
    expect(await parseAnswer(parser, '')).toEqual({ ok: true, output: { n: '10' } });
    expect(
      await parseAnswer(
        reader(() => undefined),
        '',
      ),
    ).toEqual({ ok: true, output: null });
    expect(
      await parseAnswer(
        reader(() => 'x'.repeat(262_142)),
        '',
      ),
    ).toMatchObject({ ok: true });
    expect(
      await parseAnswer(
        reader(() => 'x'.repeat(262_143)),
        '',
      ),
    ).toEqual({
      ok: false,
      problem:
        'The answer has 262145 bytes as JSON; at most 262144 are accepted. Send a shorter one.',
    });
  });

  it('keeps the message of a ParseError verbatim, without causes', async () => {
    const parser = reader(() => {
      throw new ParseError('Write the year first.', { cause: new Error('at line 7') });
    });
    expect(await parseAnswer(parser, '')).toEqual({ ok: false, problem: 'Write the year first.' });
    const copy = Object.assign(new Error('From another copy.'), { name: 'ParseError' });
    expect(
      await parseAnswer(
        reader(() => Promise.reject(copy)),
        '',
      ),
    ).toEqual({
      ok: false,
      problem: 'From another copy.',
    });
  });

  it.each([
    ['an error', new TypeError('no year'), 'The answer could not be read: no year'],
    ['a text', 'no year', 'The answer could not be read: no year'],
    ['nothing', undefined, 'The answer could not be read: it threw undefined'],
    ['an empty ParseError', new ParseError(), 'ParseError'],
  ])('treats a thrown %s as a problem', async (_label, thrown, problem) => {
    const parser = reader(() => {
      throw thrown;
    });
    expect(await parseAnswer(parser, '')).toEqual({ ok: false, problem });
  });

  it('does not wait for a parser that hangs', async () => {
    const parser = reader(() => new Promise(() => {}));
    expect(await parseAnswer(parser, '', { limitMs: 20 })).toEqual({
      ok: false,
      problem: 'The answer could not be read: it did not finish within 0.02 s',
    });
  });

  it('keeps the problem short for any error', async () => {
    const parser = reader(() => {
      throw new ParseError('é'.repeat(1e6));
    });
    const parsed = await parseAnswer(parser, '');
    expect(parsed.ok ? 0 : Buffer.byteLength(parsed.problem)).toBeLessThanOrEqual(4_096);
  });

  it('reads any valid value in prose, and no truncated one', async () => {
    await fc.assert(
      fc.asyncProperty(schemaAndValue, fc.nat(), async ({ type, value }, seed) => {
        const parser = { type: 'zod', schema: type } as const;
        const json = JSON.stringify({ value, end: 1 }, null, 1);
        const schema = z.object({ value: type, end: z.literal(1) });
        const parsed = await parseAnswer({ type: 'zod', schema }, `Here it is: ${json}\nWell?`);
        expect(parsed).toEqual({ ok: true, output: schema.parse({ value, end: 1 }) });
        const cut = json.slice(0, 1 + (seed % (json.length - 1)));
        expect((await parseAnswer(parser, cut)).ok).toBe(false);
      }),
    );
  });
});

describe('repairText', () => {
  it('names the problem and requests the whole answer again', () => {
    expect(repairText('- a: missing', { attempt: 1, attempts: 10 })).toBe(
      'Your answer was not accepted (attempt 1 of 10).\n\n- a: missing\n\n' +
        'Send the whole answer again, corrected, and nothing else.',
    );
    expect(repairText('x', { attempt: 9, attempts: 10 })).toContain('This is the last attempt.');
  });

  it('keeps up to 4 KiB of a problem in whole characters, and states how much was cut', () => {
    fc.assert(
      fc.property(anyString(), fc.integer({ min: 1, max: 5_000 }), (text, times) => {
        const problem = `p${text.repeat(times)}q`;
        const shown = repairText(problem, { attempt: 1, attempts: 2 });
        expect(Buffer.byteLength(shown)).toBeLessThan(4_096 + 200);
        const bytes = Buffer.byteLength(problem);
        expect(shown).toContain(bytes <= 4_096 ? problem : `[… cut, ${bytes} bytes in all]`);
        expect(shown).toContain('Send the whole answer again');
      }),
    );
  });
});
