import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Json } from '../../src/core/text/json.js';
import { outputSchema } from '../../src/output/schemas.js';
import { parseWithZod } from '../../src/output/parse-output.js';
import { anyJson, schemaAndValue } from './support.js';

const invoice = z.object({
  number: z.string().min(3),
  cents: z.int().min(1),
  paid: z.enum(['yes', 'no']).optional(),
  lines: z.array(z.object({ text: z.string() })).optional(),
});

async function problemOf(schema: z.ZodType, value: Json): Promise<string> {
  const parsed = await parseWithZod(schema, value);
  if (parsed.ok) throw new Error(`took ${JSON.stringify(parsed.output)}`);
  return parsed.problem;
}

describe('parseWithZod', () => {
  it('returns the result of the schema as plain JSON', async () => {
    const schema = z.object({
      due: z.iso.date().transform((text) => new Date(text)),
      size: z.number().default(5),
      ids: z.array(z.string()).transform((ids) => new Set(ids)),
    });
    expect(await parseWithZod(schema, { due: '2026-01-02', ids: ['a', 'a'] })).toEqual({
      ok: true,
      output: { due: '2026-01-02T00:00:00.000Z', size: 5, ids: ['a'] },
    });
  });

  it('names path, expectation, and received value of each fault, and returns the value', async () => {
    const value = { number: 17, cents: 1.5, paid: 'maybe', lines: [{ text: 'a' }, { text: [] }] };
    expect(await parseWithZod(invoice, value)).toEqual({
      ok: false,
      problem: [
        'The answer is not valid:',
        '- number: expected string, got 17',
        '- cents: expected int, got 1.5',
        '- paid: expected one of "yes"|"no", got "maybe"',
        '- lines[1].text: expected string, got []',
      ].join('\n'),
      output: value,
    });
  });

  it('names missing and unknown keys', async () => {
    expect(await problemOf(invoice, { number: 'A17' })).toContain(
      '- cents: missing, expected number',
    );
    expect(await problemOf(invoice.strict(), { number: 'A17', cents: 1, payed: 'no' })).toContain(
      '- unknown key "payed"; expected one of paid, lines, cents, number',
    );
    expect(await problemOf(invoice, [1])).toContain('- the whole answer: expected object, got [1]');
  });

  it('runs refinements, including those of the whole answer', async () => {
    const schema = z
      .object({ from: z.int(), to: z.int().refine(async (to) => to < 9, 'must be below 9') })
      .refine(({ from, to }) => from < to, { message: 'must be above from', path: ['to'] });
    expect(await problemOf(schema, { from: 1, to: 9 })).toContain('- to: must be below 9, got 9');
    expect(await problemOf(schema, { from: 5, to: 1 })).toContain('- to: must be above from');
    expect((await parseWithZod(schema, { from: 1, to: 2 })).ok).toBe(true);
  });

  it('treats a refinement that throws as a problem, and does not wait for one that hangs', async () => {
    const throwing = z.string().refine(() => {
      throw new Error('no database');
    });
    expect(await problemOf(throwing, { value: 'x' })).toBe(
      'The answer could not be checked: no database',
    );
    const hanging = z.object({ a: z.string().refine(() => new Promise<boolean>(() => {})) });
    expect(await parseWithZod(hanging, { a: 'x' }, { limitMs: 20 })).toEqual({
      ok: false,
      problem: 'The answer could not be checked: it did not finish within 0.02 s',
      output: { a: 'x' },
    });
  });

  it('unwraps the value of a schema that is not of an object, and accepts the bare value too', async () => {
    const schema = z.array(z.object({ id: z.int() }));
    const opened = { ok: true, output: [{ id: 1 }] };
    expect(await parseWithZod(schema, { value: [{ id: 1 }] })).toEqual(opened);
    expect(await parseWithZod(schema, [{ id: 1 }])).toEqual(opened);
    expect(await parseWithZod(z.null(), { value: null })).toEqual({ ok: true, output: null });
    expect(await problemOf(schema, { value: [{ id: 'x' }] })).toContain(
      '- value[0].id: expected number, got "x"',
    );
    expect(await problemOf(schema, { values: [] })).toContain(
      '- the answer must be an object with the one key "value"',
    );
  });

  it('does not unwrap an author’s own object with the key "value"', async () => {
    const schema = z.object({ value: z.string() });
    expect(await parseWithZod(schema, { value: 'x' })).toEqual({
      ok: true,
      output: { value: 'x' },
    });
    expect((await parseWithZod(schema, 'x')).ok).toBe(false);
  });

  it('treats null as an absent key only if the key is optional', async () => {
    const schema = z.object({
      note: z.string().optional(),
      size: z.number().default(3),
      nick: z.string().nullish(),
      name: z.string(),
      parts: z.array(z.object({ of: z.string().optional() })),
    });
    const value = { note: null, size: null, nick: null, name: 'x', parts: [{ of: null }] };
    expect(await parseWithZod(schema, value)).toEqual({
      ok: true,
      output: { size: 3, nick: null, name: 'x', parts: [{}] },
    });
    expect(await problemOf(schema, { ...value, name: null })).toContain(
      '- name: expected string, got null',
    );
  });

  it('treats null as an absent key of the matching alternative', async () => {
    const schema = z.object({
      to: z.union([
        z.object({ mail: z.string(), name: z.string().optional() }),
        z.object({ phone: z.string(), code: z.int().optional() }),
      ]),
    });
    expect(await parseWithZod(schema, { to: { phone: '1', code: null } })).toEqual({
      ok: true,
      output: { to: { phone: '1' } },
    });
  });

  it('keeps no output above 256 KiB', async () => {
    const schema = z.object({ text: z.string(), times: z.int().max(3) });
    const text = 'x'.repeat(300_000);
    expect(await problemOf(schema, { text, times: 1 })).toContain('at most 262144 are accepted');
    const parsed = await parseWithZod(schema, { text, times: 4 });
    expect(parsed).not.toHaveProperty('output');
    expect(await problemOf(schema, { text, times: 4 })).toContain('- times: expected number to be');
  });

  it('keeps the problem short for any value', async () => {
    const many = Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`key${n}`, z.string()]));
    const message = await problemOf(z.object(many), {});
    expect(message.split('\n')).toHaveLength(12);
    expect(message).toContain('- and 89 more');
    const long = z.object({ a: z.string().refine(() => false, 'é'.repeat(1e5)) });
    expect(Buffer.byteLength(await problemOf(long, { a: 'x'.repeat(1e5) }))).toBeLessThan(1_000);
  });

  it('accepts each valid value, unchanged and in the strict form', async () => {
    await fc.assert(
      fc.asyncProperty(schemaAndValue, async ({ type, value, strict }) => {
        const output = type.parse(value);
        const { wrapped } = outputSchema(type);
        const forms = wrapped ? [{ value }, { value: strict }, value] : [value, strict];
        for (const form of forms) {
          expect(await parseWithZod(type, form)).toEqual({ ok: true, output });
        }
      }),
    );
  });

  it('never accepts what the schema refuses', async () => {
    await fc.assert(
      fc.asyncProperty(schemaAndValue, anyJson, async ({ type }, value) => {
        const parsed = await parseWithZod(type, value);
        if (parsed.ok) expect(type.safeParse(parsed.output).success).toBe(true);
        else expect(type.safeParse(value).success).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});
