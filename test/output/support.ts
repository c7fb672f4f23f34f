import * as fc from 'fast-check';
import { z } from 'zod';
import type { Json } from '../../src/core/text/json.js';

/** A schema with a valid value, as any model may write it and in the strict form. */
export interface Fitting {
  readonly type: z.ZodType;
  readonly value: Json;
  /** The same value with null for each absent optional key. */
  readonly strict: Json;
}

const NAMES = ['name', 'items', 'value', 'kind', 'a b'];

const leaf: fc.Arbitrary<Fitting> = fc.oneof(
  fc.string().map((value) => fitting(z.string(), value)),
  fc.integer().map((value) => fitting(z.int(), value)),
  fc.boolean().map((value) => fitting(z.boolean(), value)),
  fc.constantFrom('red', 'blue').map((value) => fitting(z.enum(['red', 'blue']), value)),
  fc.option(fc.string()).map((value) => fitting(z.string().nullable(), value)),
  fc.constant(fitting(z.literal(7), 7)),
);

function fitting(type: z.ZodType, value: Json): Fitting {
  return { type, value, strict: value };
}

type Presence = 'required' | 'optional' | 'absent';

const { tree } = fc.letrec<{ tree: Fitting; inner: Fitting }>((tie) => ({
  tree: fc.oneof({ maxDepth: 3 }, leaf, tie('inner')),
  inner: fc.oneof(
    objectOf(tie('tree')),
    tie('tree').chain(({ type, value, strict }) =>
      fc.nat({ max: 3 }).map((length) => ({
        type: z.array(type),
        value: Array.from({ length }, () => value),
        strict: Array.from({ length }, () => strict),
      })),
    ),
    tie('tree').map(({ type, value, strict }) => ({
      type: z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('other'), note: z.string().optional() }),
        z.object({ kind: z.literal('this'), holds: type, more: z.string().optional() }),
      ]),
      value: { kind: 'this', holds: value },
      strict: { kind: 'this', holds: strict, more: null },
    })),
  ),
}));

/** Schemas with a strict form, each with a valid value. */
export const schemaAndValue = tree;

function objectOf(each: fc.Arbitrary<Fitting>): fc.Arbitrary<Fitting> {
  const presence = fc.constantFrom<Presence>('required', 'optional', 'absent');
  return fc
    .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), presence, each), {
      selector: ([name]) => name,
      maxLength: 4,
    })
    .map((fields) =>
      fields.map(([name, there, field]) => [name, telling(there, field), field] as const),
    )
    .map((fields) => {
      const shape = fields.map(([name, there, { type }]) => [
        name,
        there === 'required' ? type : type.optional(),
      ]);
      const present = fields.filter(([, there]) => there !== 'absent');
      const strict = fields.map(([name, there, { strict: value }]) => [
        name,
        there === 'absent' ? null : value,
      ]);
      return {
        type: z.object(Object.fromEntries(shape)),
        value: Object.fromEntries(present.map(([name, , { value }]) => [name, value])),
        strict: Object.fromEntries(strict),
      };
    });
}

/** Any JSON, with the keys that the schemas above use. */
export const anyJson: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, true, 7, 'red', 'this', ''),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES, 'holds', 'more', 'x'), tie('value'), { maxKeys: 4 }),
  ),
})).value;

/** For a key that is optional and nullable, null cannot be distinguished from absent. */
function telling(there: Presence, { type }: Fitting): Presence {
  return there === 'absent' && type.safeParse(null).success ? 'optional' : there;
}
