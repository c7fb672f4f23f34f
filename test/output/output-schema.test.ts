import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '../../src/core/text/json.js';
import { isWrapped, outputSchema } from '../../src/output/schemas.js';
import { toStrictSchema } from '../../src/output/strict-schema.js';
import { schemaAndValue } from './support.js';

const tree = z.object({
  name: z.string(),
  get children() {
    return z.array(tree).optional();
  },
});

function strictOf(type: z.ZodType): JsonObject {
  const strict = toStrictSchema(outputSchema(type).schema);
  if (!strict.ok) throw new Error(strict.problems.join('\n'));
  return strict.schema;
}

function problemsOf(type: z.ZodType): readonly string[] {
  const strict = toStrictSchema(outputSchema(type).schema);
  return strict.ok ? [] : strict.problems;
}

describe('outputSchema', () => {
  it('describes what the model writes: before transforms, with optional keys', () => {
    const type = z.object({ n: z.string().transform(Number), d: z.number().default(3) });
    expect(outputSchema(type)).toEqual({
      wrapped: false,
      schema: {
        properties: { n: { type: 'string' }, d: { default: 3, type: 'number' } },
        required: ['n'],
        type: 'object',
      },
    });
  });

  it.each([
    ['a text', z.string(), { type: 'string' }],
    ['an enum', z.enum(['a', 'b']), { enum: ['a', 'b'], type: 'string' }],
    ['an optional number', z.number().optional(), { type: 'number' }],
    ['an array', z.array(z.int32()), expect.objectContaining({ type: 'array' })],
    ['a union', z.union([z.object({}), z.object({})]), { anyOf: expect.anything() }],
    ['an object or null', z.object({}).nullable(), { anyOf: expect.anything() }],
  ])('wraps %s', (_label, type, value) => {
    const { schema, wrapped } = outputSchema(type);
    expect(wrapped && isWrapped(schema)).toBe(true);
    expect(schema).toEqual({
      additionalProperties: false,
      description: 'The answer is in "value".',
      properties: { value },
      required: ['value'],
      type: 'object',
    });
  });

  it('does not mistake an author’s own "value" for the wrapping', () => {
    const { schema, wrapped } = outputSchema(z.strictObject({ value: z.string() }));
    expect(wrapped || isWrapped(schema)).toBe(false);
  });

  it('keeps recursive schemas, wrapped or not', () => {
    expect(outputSchema(tree).schema['properties']).toMatchObject({
      children: { items: { $ref: '#' } },
    });
    expect(outputSchema(z.array(tree)).schema).toMatchObject({
      properties: { value: { items: { $ref: '#/$defs/__schema0' } } },
      $defs: {
        __schema0: { properties: { children: { items: { $ref: '#/$defs/__schema0' } } } },
      },
    });
  });

  it('inlines a root type with an id', () => {
    const { schema, wrapped } = outputSchema(z.object({ a: z.string() }).meta({ id: 'Root' }));
    expect(wrapped).toBe(false);
    expect(schema).toMatchObject({ type: 'object', properties: { a: { type: 'string' } } });
    expect(schema).not.toHaveProperty('$ref');
  });

  it('names each path that JSON cannot express', () => {
    const type = z.object({ due: z.date(), n: z.array(z.object({ id: z.bigint() })) });
    expect(() => outputSchema(type)).toThrow(
      '`output` has parts that JSON cannot express: "due" (date), "n[].id" (bigint)',
    );
    expect(() => outputSchema(z.map(z.string(), z.string()))).toThrow('"(the whole output)" (map)');
  });
});

describe('toStrictSchema', () => {
  it('requires all keys, with null for optional ones, and refuses others', () => {
    const type = z.object({
      name: z.string(),
      note: z.string().optional(),
      kind: z.enum(['a', 'b']).optional(),
      nick: z.string().nullish(),
      of: z.union([z.email(), z.number()]).optional(),
    });
    expect(strictOf(type)).toEqual({
      additionalProperties: false,
      properties: {
        name: { type: 'string' },
        note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        kind: { anyOf: [{ enum: ['a', 'b'], type: 'string' }, { type: 'null' }] },
        nick: { type: ['string', 'null'] },
        of: {
          anyOf: [{ format: 'email', type: 'string' }, { type: 'number' }, { type: 'null' }],
        },
      },
      required: ['name', 'note', 'kind', 'nick', 'of'],
      type: 'object',
    });
  });

  it('writes discriminated unions as anyOf', () => {
    const type = z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('mail'), to: z.email() }),
      z.object({ kind: z.literal('none') }),
    ]);
    expect(strictOf(z.object({ by: type }))['properties']).toEqual({
      by: {
        anyOf: [
          {
            additionalProperties: false,
            properties: {
              kind: { const: 'mail', type: 'string' },
              to: { format: 'email', type: 'string' },
            },
            required: ['kind', 'to'],
            type: 'object',
          },
          {
            additionalProperties: false,
            properties: { kind: { const: 'none', type: 'string' } },
            required: ['kind'],
            type: 'object',
          },
        ],
      },
    });
  });

  it('keeps references, in definitions too, without other keywords', () => {
    const label = z.object({ text: z.string().optional() }).meta({ id: 'Label' });
    expect(strictOf(z.object({ a: label.describe('first'), tree }))).toMatchObject({
      properties: { a: { $ref: '#/$defs/Label' } },
      $defs: { Label: { required: ['text'], additionalProperties: false } },
    });
    expect(strictOf(tree)).toMatchObject({
      properties: { children: { anyOf: [{ items: { $ref: '#' } }, { type: 'null' }] } },
    });
  });

  it('describes in words what strict mode does not enforce', () => {
    const type = z.object({
      code: z.string().min(1).max(8).describe('As printed.'),
      size: z.number().default(3),
      site: z.url(),
      word: z.string().regex(/^(?=a)/),
      lower: z.string().regex(/^[a-z]+$/),
    });
    expect(strictOf(type)['properties']).toEqual({
      code: {
        description: 'As printed. At least 1 character. At most 8 characters.',
        type: 'string',
      },
      size: { anyOf: [{ description: 'Null means 3.', type: 'number' }, { type: 'null' }] },
      site: { type: 'string' },
      word: { type: 'string' },
      lower: { pattern: '^[a-z]+$', type: 'string' },
    });
  });

  it.each([
    [
      'arbitrary keys',
      z.object({ r: z.record(z.string(), z.int()) }),
      'r: keys that are not named',
    ],
    ['a loose object', z.object({ o: z.looseObject({}) }), 'o: keys that are not named'],
    ['a tuple', z.object({ t: z.array(z.tuple([z.string()])) }), 't[]: a tuple'],
    ['anything', z.object({ u: z.object({ x: z.unknown() }) }), 'u.x: a value of any kind'],
    ['an array of anything', z.array(z.any()), 'value[]: a value of any kind'],
    ['never', z.object({ n: z.never() }), 'n: nothing is allowed'],
    ['the root', z.record(z.string(), z.int()), 'the whole answer: keys that are not named'],
  ])('explains why there is no strict form, with the path: %s', (_label, type, problem) => {
    expect(problemsOf(type)).toEqual([expect.stringContaining(problem)]);
  });

  it('names all problems at once', () => {
    const type = z.object({ a: z.any(), b: z.object({ c: z.tuple([z.int()]) }) });
    expect(problemsOf(type)).toHaveLength(2);
  });

  it('names the limits that a schema exceeds', () => {
    const deep = Array.from({ length: 10 }).reduce<z.ZodType>(
      (inner) => z.object({ inner }),
      z.object({}),
    );
    expect(problemsOf(deep)).toEqual([
      'the whole answer: 11 levels of objects; at most 10 are accepted',
    ]);
    const words = Array.from({ length: 1_001 }, (_, index) => `w${index}`);
    expect(problemsOf(z.object({ word: z.enum(words) }))).toEqual([
      'the whole answer: 1001 enum values; at most 1000 are accepted',
    ]);
  });

  it('is strict at every level, for any schema', () => {
    fc.assert(
      fc.property(schemaAndValue, ({ type }) => {
        expect(looseParts(strictOf(type))).toEqual([]);
      }),
    );
  });
});

/** Finds objects of a schema that are not strict, and keywords that OpenAI refuses. */
function looseParts(node: unknown): unknown[] {
  if (Array.isArray(node)) return node.flatMap((each) => looseParts(each));
  if (typeof node !== 'object' || node === null) return [];
  const { type, properties, required, additionalProperties } = node as JsonObject;
  const names = Object.keys((properties ?? {}) as JsonObject);
  const open =
    type === 'object' &&
    (additionalProperties !== false || JSON.stringify(required) !== JSON.stringify(names));
  const refused = ['oneOf', 'default', 'allOf', 'minLength'].some((key) => key in node);
  return [
    ...(open || (refused && typeof type === 'string') ? [node] : []),
    ...Object.values(node).flatMap((each) => looseParts(each)),
  ];
}
