import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { outputSchema, restorePinnedSchema } from '../../src/output/schemas.js';
import { parseWithZod } from '../../src/output/parse-output.js';
import { anyJson, schemaAndValue } from './support.js';

/** Restores the type from JSON, as on a worker that does not have it. */
function pinned(type: z.ZodType): z.ZodType {
  const text = JSON.stringify(outputSchema(type).schema);
  return restorePinnedSchema(JSON.parse(text));
}

describe('restorePinnedSchema', () => {
  it('describes faults in the same words as the original type', async () => {
    const type = z.array(z.object({ id: z.int(), note: z.string().optional() }));
    const value = { value: [{ id: 'x', note: 7 }] };
    expect(await parseWithZod(pinned(type), value)).toEqual(await parseWithZod(type, value));
  });

  it('unwraps values and treats null as an absent key like the original type', async () => {
    const type = z.array(z.object({ note: z.string().optional() }));
    expect(await parseWithZod(pinned(type), { value: [{ note: null }] })).toEqual({
      ok: true,
      output: [{}],
    });
  });

  it.each([
    ['text rules', z.object({ t: z.string().startsWith('a').endsWith('b') }), { t: 'ba' }],
    ['a record over an enum', z.record(z.enum(['a', 'b']), z.int()), { a: 1 }],
    ['a tuple', z.tuple([z.string(), z.int()]), { value: ['x', 'y'] }],
    ['recursion', z.array(z.lazy(() => z.object({ a: z.int() }))), { value: [{ a: 'x' }] }],
    ['a format', z.object({ at: z.iso.datetime() }), { at: 'yesterday' }],
    ['a closed object', z.strictObject({}), { x: 1 }],
    ['a nested closed object', z.object({ o: z.strictObject({}) }), { o: { x: 1 } }],
  ])('refuses as before: %s', async (_label, type, value) => {
    expect((await parseWithZod(type, value)).ok).toBe(false);
    expect((await parseWithZod(pinned(type), value)).ok).toBe(false);
  });

  it('throws if it cannot read the schema, so that nothing passes unchecked', () => {
    expect(() => restorePinnedSchema({ if: { type: 'string' } })).toThrow('not supported');
  });

  it('agrees with the original type on any value', async () => {
    await fc.assert(
      fc.asyncProperty(schemaAndValue, anyJson, async ({ type, value, strict }, other) => {
        const again = pinned(type);
        for (const each of [value, strict, { value: strict }, other]) {
          const expected = await parseWithZod(type, each);
          expect((await parseWithZod(again, each)).ok).toBe(expected.ok);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("runs patterns other than zod's in a thread, so that they block no other work", async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^(b+)+$' } } };
    const type = restorePinnedSchema(schema);
    expect(await type.safeParseAsync({ a: 'bbb' })).toMatchObject({ success: true });
    expect((await type.safeParseAsync({ a: 'a' })).error?.issues[0]?.message).toBe(
      'a: expected a string that matches /^(b+)+$/, got "a"',
    );
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 20);
    // It is not enforced, and not awaited.
    expect(await type.safeParseAsync({ a: `${'b'.repeat(60)}!` })).toMatchObject({ success: true });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(20);
  });
});
