import { describe, expect, test } from 'vitest';
import {
  exampleAnswer,
  fieldNames,
  formLines,
  hostOf,
  unwrittenField,
  withDefaults,
} from '../../src/core/requests/server-ask.js';
import type { Json, JsonObject } from '../../src/core/text/json.js';
import { checkBySchema } from '../../src/output/schema-check.js';
import { InputRequired, readInputRequired } from '../../src/mcp/input-required.js';
import { learnSecrets } from '../../src/secrets/known.js';
import { ToolError } from '../../src/tools/errors.js';

const form = { type: 'object', properties: { name: { type: 'string' } } };
const elicit = (params: unknown) => ({ method: 'elicitation/create', params });
const read = (inputRequests: unknown, requestState?: unknown) =>
  readInputRequired({ inputRequests, requestState }, 'shop').input;

describe('what a server asks', () => {
  test('is read without hidden characters, and cut', () => {
    const { asks, state } = read(
      {
        a: elicit({ message: `a\u202Eb${'x'.repeat(5_000)}`, requestedSchema: form }),
        b: elicit({ mode: 'url', message: 7, url: 'https://Bank.Example/a' }),
      },
      'opaque',
    );
    expect(asks).toEqual([
      { key: 'a', message: expect.stringMatching(/^ab.*characters cut\]$/s), form },
      { key: 'b', message: '(the server gives no message)', url: 'https://bank.example/a' },
    ]);
    expect(state).toBe('opaque');
    expect(read(undefined, 'later')).toEqual({ asks: [], state: 'later' });
  });

  learnSecrets({ env: { KEY: 'canary-state-48c1' }, names: ['KEY'] });
  const many = Object.fromEntries(
    Array.from({ length: 11 }, (_, at) => [
      `k${at}`,
      elicit({ message: '', requestedSchema: form }),
    ]),
  );
  const fields = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`f${at}`, {}]));
  test.each([
    [
      { a: { method: 'sampling/createMessage' } },
      'sampling/createMessage; only elicitation/create',
    ],
    [{ a: { method: 'roots/list' } }, 'roots/list; only'],
    [{ a: 7 }, 'a request without a name; only'],
    [many, '11 requests at once; at most 10'],
    [{ ['k'.repeat(201)]: elicit({ requestedSchema: form }) }, 'a key of 201 characters'],
    [{ a: elicit({ message: 'x' }) }, 'a form without a schema'],
    [{ a: elicit({ requestedSchema: { type: 'array' } }) }, 'a form without a schema'],
    [
      { a: elicit({ requestedSchema: { type: 'object', properties: fields } }) },
      'a form of 51 fields; at most 50',
    ],
    [
      { a: elicit({ requestedSchema: { type: 'object', title: 'x'.repeat(20_000) } }) },
      'at most 16384 are shown',
    ],
    [{ a: elicit({ requestedSchema: { type: 'object', properties: { a: 1 } } }) }, 'not schemas'],
    [{ a: elicit({ mode: 'voice' }) }, 'in the mode voice; only form and url'],
    [{ a: elicit({ mode: 'url', url: 'javascript:alert(1)' }) }, 'an address with javascript:'],
    [{ a: elicit({ mode: 'url', url: 'https://bank@evil.example/' }) }, 'with a user name in it'],
    [{ a: elicit({ mode: 'url', url: 'no address' }) }, 'an address of at most 2048 characters'],
  ])('is refused if people cannot be asked it: %j', (requests, problem) => {
    expect(() => read(requests)).toThrow(ToolError);
    expect(() => read(requests)).toThrow(problem);
  });

  test('is refused if its state is too large, or holds a secret', () => {
    expect(() => read({}, 'x'.repeat(40_000))).toThrow('its state has 40000 characters');
    expect(() => read({}, 'has canary-state-48c1')).toThrow("its state holds a worker's secret");
  });

  test('ends an attempt as an error', () => {
    expect(readInputRequired({ requestState: 's' }, 'shop')).toBeInstanceOf(InputRequired);
  });
});

test('each kind of field is shown with its choices, bounds, and default', () => {
  const every = {
    type: 'object',
    properties: {
      email: { type: 'string', format: 'email', title: 'Address', maxLength: 1 },
      age: { type: 'integer', minimum: 0, maximum: 150, default: 30 },
      old: { type: 'string', enum: ['a', 'b'], enumNames: ['Ah', 'Be'] },
      one: { type: 'string', oneOf: [{ const: 'x', title: 'Ex' }, { const: 'y' }] },
      some: { type: 'array', items: { anyOf: [{ const: 1 }] }, minItems: 1, maxItems: 2 },
      list: { type: 'array', items: { type: 'string', enum: ['p'] }, default: ['p'] },
      odd: 7,
      none: {},
    },
    required: ['email', 7],
  };
  expect(formLines(every)).toEqual([
    'email (email, required): Address [at most 1 character]',
    'age (integer) [at least 0; at most 150; default 30]',
    'old (text) [one of "a" (Ah), "b" (Be)]',
    'one (text) [one of "x" (Ex), "y"]',
    'some (list) [one of 1; at least 1 item; at most 2 items]',
    'list (list) [one of "p"; default ["p"]]',
    'odd (any value)',
    'none (any value)',
  ]);
  expect(fieldNames(every)).toHaveLength(8);
  expect(withDefaults({ age: 7 }, every)).toEqual({ age: 7, list: ['p'] });
  expect([formLines({}), fieldNames({ properties: 7 }), withDefaults({}, {})]).toEqual([
    [],
    [],
    {},
  ]);
});

/** Returns a form whose fields are all required. */
const needing = (properties: JsonObject) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});

describe('the answer in a printed command', () => {
  test.each<[JsonObject, Json]>([
    [{ type: 'boolean', default: false }, false],
    [{ type: 'integer', default: 3 }, 3],
    [{ type: 'string', enum: ['a', 'b'], default: 'b' }, 'b'],
    [{ type: 'string', enum: ['a'] }, 'a'],
    [{ type: 'string', oneOf: [{ const: 'n', title: 'North' }] }, 'n'],
    [{ const: 7 }, 7],
    [{ const: 'TEXT' }, 'TEXT'],
    [{ type: 'array', items: { type: 'string' }, default: ['x'] }, ['x']],
  ])('has for %j the default or the only value: %j', async (field, value) => {
    const asks = needing({ f: field });
    const answer: JsonObject = JSON.parse(exampleAnswer(asks) ?? '');
    expect(answer).toEqual({ f: value });
    expect(await checkBySchema(asks, answer)).toBeNull();
    expect(unwrittenField(answer, asks)).toBeUndefined();
  });

  test.each<[JsonObject, Json]>([
    [{ type: 'string' }, 'TEXT'],
    [{ type: 'string', title: 'TEXT' }, 'TEXT'],
    [{ type: 'string', format: 'date' }, 'TEXT'],
    [{ type: 'boolean' }, 'TEXT'],
    [{ type: 'integer' }, 'TEXT'],
    [{ type: 'number', minimum: 2, maximum: 3 }, 'TEXT'],
    [{ type: 'string', enum: ['delete', 'keep'] }, 'TEXT'],
    [{ oneOf: [{ const: 'n', title: 'North' }, { const: 's' }] }, 'TEXT'],
    [{ anyOf: [{ const: 'n' }, { type: 'string' }] }, 'TEXT'],
    [{ type: 'array', items: { type: 'string' } }, ['TEXT']],
    [{ type: 'array', items: { enum: ['p', 'q'] }, minItems: 2 }, ['TEXT']],
    [{}, 'TEXT'],
  ])('has for %j a word that is refused until a person has replaced it', (field, value) => {
    const asks = needing({ f: field });
    expect(JSON.parse(exampleAnswer(asks) ?? '')).toEqual({ f: value });
    expect(unwrittenField({ f: value }, asks)).toBe('f');
    expect(unwrittenField({ f: 'Ada' }, asks)).toBeUndefined();
  });

  test.each<[JsonObject, Json]>([
    [{ enum: ['TEXT', 'HTML'] }, 'TEXT'],
    [{ type: 'array', items: { enum: ['TEXT', 'HTML'] } }, ['TEXT']],
  ])('is none for %j, of which the word is an answer', (field, value) => {
    const asks = needing({ f: field });
    expect(exampleAnswer(asks)).toBeNull();
    expect(unwrittenField({ f: value }, asks)).toBeUndefined();
  });

  test('leaves out optional fields, then those with a default, and is none if it is still too long', () => {
    const long = 'x'.repeat(300);
    const optional = { type: 'object', properties: { a: { type: 'string' } } };
    expect(exampleAnswer(optional)).toBe('{"a":"TEXT"}');
    const some = { ...optional, properties: { ...optional.properties, b: { default: 2 } } };
    expect(exampleAnswer(some)).toBe('{"b":2}');
    expect(exampleAnswer({ type: 'object' })).toBe('{}');
    const both = needing({ a: { default: long }, b: { type: 'integer' } });
    expect(exampleAnswer(both)).toBe('{"b":"TEXT"}');
    expect(exampleAnswer(needing({ a: { enum: [long] } }))).toBeNull();
    expect(exampleAnswer(needing({ 'a\u202e': { type: 'integer' } }))).toBe(
      String.raw`{"a\u202e":"TEXT"}`,
    );
  });
});

test.each([
  ['https://Pay.example/1?to=bank.example', 'pay.example'],
  ['https://bank.example@evil.example/', 'evil.example'],
  ['http://localhost:8080/x', 'localhost:8080'],
  ['nothing', ''],
])('the host that %s opens is %s', (url, host) => {
  expect(hostOf(url)).toBe(host);
});
