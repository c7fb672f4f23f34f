import { expect, test } from 'vitest';
import type { Json, JsonObject } from '../../src/core/text/json.js';
import { checkBySchema } from '../../src/output/schema-check.js';

const object = (properties: JsonObject, rest: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  ...rest,
});
const FORM = object(
  {
    seats: { type: 'integer', minimum: 1 },
    confirm: { type: 'boolean' },
    'a/b c': { type: 'string', minLength: 2 },
  },
  { required: ['seats', 'confirm'] },
);
const titled = {
  oneOf: [
    { const: 'n', title: 'North' },
    { const: 's', title: 'South' },
  ],
};
const nested = object({
  list: { type: 'array', maxItems: 2, items: object({ x: { type: ['string', 'null'] } }) },
});

const nullable = object({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } });
const tagged = object({
  a: {
    oneOf: [
      object({ k: { const: 'x' }, n: { type: 'number' } }, { required: ['k', 'n'] }),
      object(
        { k: { const: 'y' }, m: { type: 'number' }, o: { type: 'number' } },
        { required: ['k', 'm'] },
      ),
    ],
  },
});
const point = object({ x: { type: 'number' }, y: { type: 'number' } }, { required: ['x', 'y'] });
const line = object({ from: point, to: point, name: {} }, { required: ['from', 'to', 'name'] });
/** Returns the schema of an object whose field may refer to others. */
const references = (a: JsonObject): JsonObject =>
  object(
    { a },
    {
      $defs: {
        point,
        name: { type: 'string' },
        alias: { $ref: '#/$defs/point' },
        named: object({ name: {} }, { required: ['name'] }),
        trunk: object({ y: {}, kid: { $ref: '#/$defs/trunk' } }, { required: ['y'] }),
        tree: object({ x: {}, kid: { $ref: '#/$defs/tree' } }, { required: ['x'] }),
      },
    },
  );

test.each<[JsonObject, Json, string]>([
  [
    FORM,
    { seats: 'two' },
    'confirm: missing, expected true or false; seats: expected an integer, got "two"',
  ],
  [FORM, { seats: 0, confirm: true }, 'seats: expected an integer of at least 1, got 0'],
  [FORM, 'x', 'the answer: expected an object, got "x"'],
  [FORM, { seats: 1, confirm: true, 'a/b c': 'x' }, 'a/b c: expected at least 2 characters, got 1'],
  [
    object({ r: { enum: ['north', 'south'] } }),
    { r: 'nroth' },
    'r: expected one of "north", "south", got "nroth"; did you mean "north"?',
  ],
  [object({ r: titled }), { r: 'w' }, 'r: expected one of "n", "s", got "w"'],
  [
    object({ r: { anyOf: [{ type: 'string' }, { type: 'integer' }] } }),
    { r: true },
    'r: expected a string or an integer, got true',
  ],
  [
    object({ d: { type: 'string', format: 'date' } }),
    { d: 'soon' },
    'd: expected a string in the format date, such as "2026-01-31", got "soon"',
  ],
  [
    object({}, { required: ['d'], properties: { d: { type: 'string', format: 'email' } } }),
    {},
    'd: missing, expected a string in the format email, such as "ann@example.com"',
  ],
  [nested, { list: [{ x: 1 }] }, 'list[0].x: expected a string or null, got 1'],
  [nested, { list: [{}, {}, {}] }, 'list: expected at most 2 items, got 3'],
  [object({ a: {} }, { additionalProperties: false }), { b: 1 }, 'the answer: unknown field "b"'],
  [
    { ...FORM, $schema: 'http://json-schema.org/draft-07/schema#' },
    { seats: 1 },
    'confirm: missing, expected true or false',
  ],
  [
    object({ a: { not: {} } }),
    { a: 1 },
    'a: expected a value that fits the schema (it must NOT be valid), got 1',
  ],
  [nullable, { a: 5 }, 'a: expected a string or null, got 5'],
  [
    object({ a: { anyOf: [{ const: 'auto' }, { type: ['integer', 'null'] }] } }),
    { a: true },
    'a: expected an integer or null, or "auto", got true',
  ],
  [
    object({
      a: { anyOf: [{ anyOf: [{ type: 'string' }, { type: 'boolean' }] }, { type: 'null' }] },
    }),
    { a: 5 },
    'a: expected a string or true or false or null, got 5',
  ],
  [
    object({ a: { anyOf: [{ type: 'string', minLength: 3 }, { type: 'null' }] } }),
    { a: 'x' },
    'a: expected at least 3 characters, got 1',
  ],
  [tagged, { a: { k: 'x', n: 'q' } }, 'a.n: expected a number, got "q"'],
  [tagged, { a: { k: 'y', m: 1, o: 'q' } }, 'a.o: expected a number, got "q"'],
  [tagged, { a: { k: 'z', m: 1 } }, 'a.k: expected one of "x", "y", got "z"'],
  [
    object({ a: { anyOf: [point, line] } }),
    { a: { x: 'one' } },
    'a.y: missing, expected a number; a.x: expected a number, got "one"',
  ],
  [
    { oneOf: [{ type: 'string' }, { minLength: 1 }, { type: 'null' }] },
    'x',
    'the answer: expected a value that fits exactly one of the alternatives, got "x"',
  ],
  [
    references({ anyOf: [{ $ref: '#/$defs/point' }, { type: 'string' }] }),
    { a: {} },
    'a.x: missing, expected a number; a.y: missing, expected a number',
  ],
  [
    references({ anyOf: [{ $ref: '#/$defs/alias' }, { $ref: '#/$defs/name' }] }),
    { a: 5 },
    'a: expected an object or a string, got 5',
  ],
  [
    references({ minimum: 9, enum: [1, 2], anyOf: [{ $ref: '#/$defs/name' }, { type: 'null' }] }),
    { a: 5 },
    'a: expected one of 1, 2, got 5; a: expected a string or null, got 5; a: expected a number of at least 9, got 5',
  ],
  // The validator gives the errors of a schema that refers to itself without their place.
  [
    references({ anyOf: [{ $ref: '#/$defs/tree' }, { type: 'string' }] }),
    { a: { kid: {} } },
    'a.x: missing, expected a value; a.kid.x: missing, expected a value',
  ],
  [
    references({ anyOf: [{ $ref: '#/$defs/tree' }, { $ref: '#/$defs/trunk' }] }),
    { a: { kid: {} } },
    'a: expected a value that fits one of the alternatives, got {"kid":{}}',
  ],
  [
    references({
      allOf: [point, { $ref: '#/$defs/named' }, { anyOf: [{ $ref: '#/$defs/name' }] }],
    }),
    { a: {} },
    'a.x: missing, expected a number; a.y: missing, expected a number; a.name: missing, expected a value; a: expected a string, got {}',
  ],
  [
    object({ list: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } } }),
    { list: [5, 6] },
    'list[0]: expected a string or null, got 5; list[1]: expected a string or null, got 6',
  ],
  [
    object({ a: { propertyNames: { pattern: '^a', maxLength: 3 } } }),
    { a: { bbbb: 1, a: 2, cccc: 3 } },
    'a: field "bbbb" has a name that is not allowed, expected at most 3 characters, and a string that matches /^a/; a: field "cccc" has a name that is not allowed, expected at most 3 characters, and a string that matches /^a/',
  ],
  [
    object(
      {},
      { required: ['a'], propertyNames: { anyOf: [{ pattern: '^a' }, { maxLength: 3 }] } },
    ),
    { bbbb: 1 },
    'a: missing, expected a value; the answer: field "bbbb" has a name that is not allowed',
  ],
])('%j refuses %j', async (schema, value, fault) => {
  expect(await checkBySchema(schema, value, 'the answer')).toBe(fault);
});

test('at most ten faults of a value are named', async () => {
  const schema = { type: 'array', items: { type: 'string' } };
  const fault = await checkBySchema(
    schema,
    Array.from({ length: 12 }, (_, at) => at),
  );
  expect(fault).toMatch(/^\[0\]: expected a string, got 0; .*\[9\].*; and 2 more$/);
});
