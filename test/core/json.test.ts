import { expect, test } from 'vitest';
import { isJsonObject } from '../../src/core/text/json.js';

const deep: unknown = JSON.parse(`${'{"a":['.repeat(50_000)}${']}'.repeat(50_000)}`);

test.each([[{}], [{ a: [null, true, 1, 'x', { b: undefined }] }], [deep]])(
  'an object that holds only JSON is recognized (%#)',
  (value) => {
    expect(isJsonObject(value)).toBe(true);
  },
);

test.each([null, [], 'x', { a: () => '' }, { a: [{ b: 1n }] }, { a: Symbol('x') }])(
  'anything else is not (%#)',
  (value) => {
    expect(isJsonObject(value)).toBe(false);
  },
);
