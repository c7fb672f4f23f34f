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
    'r: expected a value that fits one of the alternatives, got true',
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
