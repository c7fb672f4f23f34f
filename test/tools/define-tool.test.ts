import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { z as mini } from 'zod/mini';
import type { JsonObject } from '../../src/core/json.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition } from '../../src/tools/tool-definition.js';
import { callTool, toolContext } from './support.js';

const minimal = {
  name: 'lookup',
  description: 'Looks up an order.',
  input: z.object({ order: z.string() }),
  effect: 'read' as const,
  execute: () => 'found',
};

/** What a JavaScript author could write. */
function defineLoosely(changes: Record<string, unknown>): unknown {
  return Reflect.apply(defineTool, undefined, [{ ...minimal, ...changes }]);
}

describe('defineTool', () => {
  it('fills in the defaults', () => {
    expect(toToolDefinition(defineTool(minimal))).toEqual({
      name: 'lookup',
      description: 'Looks up an order.',
      effect: 'read',
      timeoutMs: 120_000,
      heartbeatMs: 10_000,
      attempts: 3,
      parameters: {
        additionalProperties: false,
        properties: { order: { type: 'string' } },
        required: ['order'],
        type: 'object',
      },
    });
    expect(defineTool({ ...minimal, effect: 'keyed' }).attempts).toBe(3);
    expect(defineTool({ ...minimal, effect: 'once' }).attempts).toBe(1);
  });

  it('keeps what the author chose', () => {
    const tool = defineTool({
      ...minimal,
      effect: 'once',
      timeout: 5_000,
      heartbeat: 2_000,
      retry: { attempts: 1 },
      ends: true,
      repeat: 'allow',
      verify: () => undefined,
    });
    expect(toToolDefinition(tool)).toMatchObject({
      timeoutMs: 5_000,
      heartbeatMs: 2_000,
      attempts: 1,
      ends: true,
      repeat: 'allow',
      verify: true,
    });
    expect(toToolDefinition(defineTool({ ...minimal, ends: false }))).not.toHaveProperty('ends');
  });

  it('types the input of every function from the schema', async () => {
    const tool = defineTool({
      ...minimal,
      input: z.object({ count: z.number().default(2), label: z.string().transform(Number) }),
      approval: (input) => input.count > 1,
      describe: (input) => `${input.count}`,
      execute: (input) => {
        expectTypeOf(input).toEqualTypeOf<{ count: number; label: number }>();
        return input.count + input.label;
      },
    });
    expect(await callTool(tool, { label: '40' })).toBe('42');
  });

  it('calls the functions on the object that the author wrote', () => {
    const options = {
      ...minimal,
      timeout: 5,
      execute(): string {
        return `${this.timeout}`;
      },
    };
    expect(defineTool(options).execute({}, toolContext())).toBe('5');
  });

  it('refuses arguments that the schema does not name, unless it is loose', async () => {
    await expect(callTool(defineTool(minimal), { order: '1', x: 1 })).rejects.toThrow(
      'there is no argument "x"; the arguments are order',
    );
    const loose = defineTool({ ...minimal, input: z.looseObject({ order: z.string() }) });
    expect(await callTool(loose, { order: '1', x: 1 })).toBe('found');
    expect(loose.parameters['additionalProperties']).not.toBe(false);
  });

  it('keeps refinements of the whole input', async () => {
    const input = z.object({ a: z.number(), b: z.number() }).refine(({ a, b }) => a < b, 'a < b');
    await expect(callTool(defineTool({ ...minimal, input }), { a: 2, b: 1 })).rejects.toThrow(
      'a < b',
    );
  });

  it('takes names that every object has', () => {
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect(defineTool({ ...minimal, name }).name).toBe(name);
    }
  });

  it.each([
    [{ name: 'has space' }, /tool name "has space" is not possible: use 1 to 64 letters/],
    [{ name: '' }, /tool name "" is not possible/],
    [{ name: 'x'.repeat(65) }, /is not possible/],
    [{ name: 7 }, /tool name 7 is not possible/],
    [{ description: ' ' }, /tool "lookup": `description` must be a text/],
    [{ effect: undefined }, /`effect` is undefined; it has no default: say "read"/],
    [{ effect: 'write' }, /`effect` is "write".*"keyed".*"once"/],
    [
      { input: { order: 'string' } },
      /`input` must be a z\.object\(\{…\}\) of zod 4, not an object/,
    ],
    [{ input: z.string() }, /must be a z\.object\(\{…\}\) of zod 4, not z\.string/],
    [{ input: mini.object({ order: mini.string() }) }, /not with zod\/mini/],
    [{ input: z.object({ ['__proto__']: z.string() }) }, /has a field `__proto__`/],
    [{ output: 'text' }, /`output` must be a zod schema, not "text"/],
    [
      { timeout: 0 },
      /`timeout` must be a positive number of milliseconds, at most 2147483647 \(24 days\), not 0/,
    ],
    [
      { timeout: Number.NaN },
      /`timeout` must be a positive number of milliseconds, at most 2147483647 \(24 days\), not NaN/,
    ],
    [
      { heartbeat: -1 },
      /`heartbeat` must be a positive number of milliseconds, at most 2147483647 \(24 days\), not -1/,
    ],
    [{ timeoutMs: 5 }, /there is no option `timeoutMs`; possible are name, description/],
    [{ retry: 3 }, /`retry` must be \{ attempts: number \}, not 3/],
    [{ retry: { attempts: 0 } }, /`retry\.attempts` must be a whole number from 1, not 0/],
    [{ retry: { attempts: 1.5 } }, /`retry\.attempts` must be a whole number from 1, not 1\.5/],
    [{ effect: 'once', retry: { attempts: 2 } }, /with effect "once" has one attempt/],
    [{ verify: () => undefined }, /`verify` is for effect "once", not "read"/],
    [{ ends: 'yes' }, /`ends` must be true or false, not "yes"/],
    [{ repeat: true }, /`repeat` can only be "allow", not true/],
    [{ approval: 'sometimes' }, /`approval` must be "never", "always" or a function/],
    [{ catalog: { summary: 'x' } }, /`catalog` must be \{ summary, category, actions/],
    [{ execute: undefined }, /`execute` must be a function, not undefined/],
    [{ describe: 'x' }, /`describe` must be a function, not "x"/],
  ])('refuses %o', (changes, message) => {
    expect(() => defineLoosely(changes)).toThrow(message);
  });
});

function schemaOf(input: z.ZodObject): JsonObject {
  return defineTool({ ...minimal, input }).parameters;
}

describe('the JSON schema of the arguments', () => {
  it.each([
    ['due', z.object({ due: z.date() }), '"due" (date)'],
    ['a list', z.object({ n: z.object({ ids: z.array(z.bigint()) }) }), '"n.ids[]" (bigint)'],
    [
      'a union',
      z.object({ u: z.union([z.string(), z.map(z.string(), z.number())]) }),
      '"u(alternative 2)" (map)',
    ],
    ['a record', z.object({ r: z.record(z.string(), z.set(z.string())) }), '"r{}" (set)'],
    ['a bare transform', z.object({ t: z.transform(String) }), '"t" (transform)'],
    ['an instance', z.object({ f: z.file() }), '"f" (file)'],
    ['a custom check', z.object({ c: z.custom<string>() }), '"c" (custom)'],
    ['an optional', z.object({ o: z.date().optional() }), '"o" (date)'],
  ])('names the path of what JSON cannot express: %s', (_label, input, expected) => {
    expect(() => schemaOf(input)).toThrow(expected);
    expect(() => schemaOf(input)).toThrow('tool "lookup": `input` has what JSON cannot express');
  });

  it('names all such paths at once', () => {
    const input = z.object({ b: z.date(), a: z.bigint() });
    expect(() => schemaOf(input)).toThrow('"a" (bigint), "b" (date)');
  });

  it('is what the model writes: before transforms, with defaults left optional', () => {
    const input = z.object({ n: z.string().transform(Number), d: z.number().default(3) });
    expect(schemaOf(input)).toEqual({
      additionalProperties: false,
      properties: { n: { type: 'string' }, d: { default: 3, type: 'number' } },
      required: ['n'],
      type: 'object',
    });
  });

  it('sorts keywords and keeps the order of the properties, also of one called "properties"', () => {
    const input = z.object({
      z: z.string().min(1).describe('last'),
      properties: z.object({ y: z.string(), b: z.string() }),
      a: z.enum(['x', 'c']),
    });
    expect(JSON.stringify(schemaOf(input))).toBe(
      JSON.stringify({
        additionalProperties: false,
        properties: {
          z: { description: 'last', minLength: 1, type: 'string' },
          properties: {
            properties: { y: { type: 'string' }, b: { type: 'string' } },
            required: ['y', 'b'],
            type: 'object',
          },
          a: { enum: ['x', 'c'], type: 'string' },
        },
        required: ['z', 'properties', 'a'],
        type: 'object',
      }),
    );
  });

  it('keeps recursive schemas', () => {
    const node = z.object({
      name: z.string(),
      get children() {
        return z.array(node);
      },
    });
    expect(JSON.stringify(schemaOf(node))).toContain('"$ref":"#');
  });
});
