import { expect, test } from 'vitest';

interface Field {
  readonly name: string;
  readonly isNumber: boolean;
  readonly isNeeded: boolean;
  readonly choices: readonly (readonly [unknown, string])[] | null;
  readonly firstText: string;
}

interface FormModule {
  readonly fieldsOf: (form: object) => readonly Field[];
  readonly readFields: (form: object, textsOf: (at: number) => readonly string[]) => object;
}

const path = new URL('../../console/form.js', import.meta.url).href;
const { fieldsOf, readFields } = (await import(path)) as FormModule;

test('a field that may be null is a field of its other type', () => {
  const optional = (type: string) => ({ anyOf: [{ type }, { type: 'null' }], default: null });
  const form = {
    type: 'object',
    properties: { city: optional('string'), euros: optional('integer'), sure: optional('boolean') },
  };
  const [city, euros, sure] = fieldsOf(form);
  expect([city?.choices, euros?.choices, euros?.isNumber]).toEqual([null, null, true]);
  expect(sure?.choices?.map(([, title]) => title)).toEqual(['yes', 'no']);
  const texts = [['Oslo'], ['20'], ['true']];
  expect(readFields(form, (at) => texts[at] ?? [])).toEqual({
    city: 'Oslo',
    euros: 20,
    sure: true,
  });
  expect(readFields(form, () => [''])).toEqual({});
});

test.each([
  { type: 'array', default: null },
  { type: 'array', items: null, default: 'a' },
  { enum: [{ toString: 1, valueOf: 1 }, null], enumNames: {} },
  { default: { toString: 1, valueOf: 1 } },
  { anyOf: [null, 1, {}], oneOf: {} },
  { anyOf: [{ const: null }, { const: 'b', title: 7 }] },
  { type: [null, 'null', 5], title: {}, description: [] },
  'x',
  null,
])('the field %j of a hostile server is shown, and takes nothing else with it', (field) => {
  for (const required of [undefined, null, 'a', { includes: true }]) {
    const form = { type: 'object', properties: { a: field, b: { type: 'string' } }, required };
    const [, other] = fieldsOf(form);
    expect(other).toMatchObject({ name: 'b', isNeeded: false });
    expect(readFields(form, (at) => (at === 1 ? ['text'] : []))).toEqual({ b: 'text' });
  }
});
