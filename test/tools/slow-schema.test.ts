import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { mayBeSlow } from '../../src/tools/arguments/check-arguments.js';

const Tree = z.object({
  name: z.string(),
  get parts() {
    return z.array(Tree);
  },
});

describe('mayBeSlow', () => {
  test.each([
    ['an object', z.object({ a: z.string().min(1).max(9), b: z.int().positive().optional() })],
    ['a strict object', z.strictObject({ a: z.literal('x').nullable() })],
    ['a union', z.union([z.string(), z.array(z.number().multipleOf(2))])],
    ['a discriminated union', z.discriminatedUnion('t', [z.object({ t: z.literal('a') })])],
    ['a record and a tuple', z.record(z.string(), z.tuple([z.enum(['a']), z.boolean()]))],
    ['a default', z.object({ a: z.string().default('x') })],
    ['formats of zod', z.object({ a: z.email(), b: z.iso.datetime(), c: z.uuid(), d: z.ipv4() })],
    ['an address', z.httpUrl()],
    ['a type that occurs twice', ((a) => z.object({ a, b: a }))(z.object({ c: z.string() }))],
  ])('is false for %s', (_, type) => expect(mayBeSlow(type)).toBe(false));

  test.each([
    ['a refinement', z.string().refine(() => true)],
    [
      'one that is deep inside',
      z.object({ a: z.array(z.object({ b: z.any().superRefine(() => {}) })) }),
    ],
    ['a transform', z.string().transform((text) => text)],
    ['an overwrite', z.string().trim()],
    ['a pattern', z.object({ a: z.string().regex(/^(a+)+$/) })],
    ['a pattern instead of a format', z.email({ pattern: /^(a+)+$/ })],
    ['a format of the author', z.stringFormat('even', () => true)],
    ['a pattern for a part of a URL', z.url({ hostname: /^(a+)+$/ })],
    ['a pattern of a template', z.templateLiteral(['a', z.string()])],
    ['a custom type', z.custom<string>(() => true)],
    ['an error map', z.string({ error: () => 'no' })],
    ['a lazy type', z.lazy(() => z.string())],
    ['a type that refers to itself', Tree],
    [
      'a key of a record',
      z.record(
        z.string().refine(() => true),
        z.any(),
      ),
    ],
    ['a catch', z.string().catch(() => 'x')],
    ['a catch-all', z.object({}).catchall(z.string().refine(() => true))],
  ])('is true for %s', (_, type) => expect(mayBeSlow(type)).toBe(true));
});
