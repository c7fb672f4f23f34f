import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { z as mini } from 'zod/mini';
import type { JsonObject } from '../../src/core/text/json.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition } from '../../src/tools/tool.js';
import { InputError } from '../../src/core/errors.js';
import type { ArtifactResult } from '../../src/tools/built-in/artifact.js';
import { toolContext } from '../../src/testing.js';
import { callTool } from './support.js';

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

  it("preserves the author's choices", () => {
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

  it('calls the functions on the object that the author wrote', async () => {
    const options = {
      ...minimal,
      timeout: 5,
      execute(): string {
        return `${this.timeout}`;
      },
    };
    expect(await defineTool(options).execute({ order: '1' }, toolContext())).toBe('5');
  });

  it('types a call in a test, validates it, and rejects with the text that a model would read', async () => {
    const tool = defineTool({
      ...minimal,
      input: z.object({ euros: z.number().default(5), due: z.iso.date().transform(Date.parse) }),
      output: z.object({ paid: z.number() }),
      execute: ({ euros, due }) => ({ paid: euros + due }),
    });
    expectTypeOf<Parameters<(typeof tool)['execute']>[0]>().toEqualTypeOf<{
      euros?: number | undefined;
      due: string;
    }>();
    expectTypeOf<Awaited<ReturnType<(typeof tool)['execute']>>>().toEqualTypeOf<
      { paid: number } | ArtifactResult<{ paid: number }>
    >();
    expect(await tool.execute({ due: '1970-01-01' }, toolContext())).toEqual({ paid: 5 });
    await expect(tool.execute({ due: 'soon' }, toolContext())).rejects.toThrow(
      new InputError(
        'The arguments of lookup are not valid:\n- due: expected ISO date, got "soon"',
      ),
    );
    // @ts-expect-error -- a key that the schema does not have
    await expect(tool.execute({ date: 'x' }, toolContext())).rejects.toThrow(
      'unknown argument "date"',
    );
  });

  it('refuses arguments that the schema does not name, unless it is loose', async () => {
    await expect(callTool(defineTool(minimal), { order: '1', x: 1 })).rejects.toThrow(
      'unknown argument "x"; expected one of order',
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

  it('accepts names that every object has', () => {
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect(defineTool({ ...minimal, name }).name).toBe(name);
    }
  });

  it.each([
    [
      { name: 'has space' },
      'tool "has space": name: expected 1 to 64 letters, digits, "_" and "-"',
    ],
    [{ name: '' }, 'tool "": name: expected 1 to 64 letters'],
    [{ name: 'x'.repeat(65) }, 'name: expected 1 to 64 letters'],
    [{ name: 7 }, /^tool: name: expected string, got 7$/],
    [{ description: ' ' }, /^tool "lookup": description: expected a text that .+, got " "$/],
    [
      { effect: undefined },
      /effect: missing, expected "read" .+ "once" \(.+\); there is no default$/,
    ],
    [{ effect: 'write' }, /effect: expected "read".+"keyed".+"once" .+, got "write"; there is no/],
    [
      { input: { order: 'string' } },
      'input: expected a z.object({…}) of zod 4, imported from "zod"',
    ],
    [{ input: z.string() }, 'input: expected a z.object({…})'],
    [{ input: mini.object({ order: mini.string() }) }, 'of zod 4, imported from "zod"'],
    [{ input: z.object({ ['__proto__']: z.string() }) }, 'expected no field `__proto__`'],
    [{ output: 'text' }, 'output: expected a zod schema, got "text"'],
    [
      { timeout: 0 },
      'timeout: expected a whole number of ms or words such as "30 seconds" or "2 days", got 0; at most 24 days',
    ],
    [
      { timeout: Number.NaN },
      /timeout: expected a whole number of ms or words .+, got NaN; at most 24 days$/,
    ],
    [
      { heartbeat: -1 },
      /heartbeat: expected a whole number of ms or words .+, got -1; at most 24 days$/,
    ],
    [{ timeoutMs: 5 }, '"timeoutMs" is not an option; did you mean timeout?'],
    [{ desc: 'x' }, '"desc" is not an option; did you mean description?'],
    [{ effect: 'reads' }, /got "reads" \(nearest: "read"\); there is no default$/],
    [
      { input: z.string() },
      /input: expected a z\.object\(.+\) of zod 4, .+, got a zod schema of type "string"; write the fields in z\.object/,
    ],
    [{ inputSchema: 5 }, '"inputSchema" is not an option; did you mean input?'],
    [{ parameters: 5 }, '"parameters" is not an option; did you mean input?'],
    [{ needsApproval: true }, '"needsApproval" is not an option; did you mean approval?'],
    [{ wibble: 5 }, '"wibble" is not an option; the options are name, description'],
    [{ retry: 3 }, 'retry: expected object, got 3'],
    [{ retry: { atempts: 1 } }, 'retry: "atempts" is not an option; did you mean attempts?'],
    [{ retry: { attempts: 0 } }, 'retry.attempts: expected number to be >=1, got 0'],
    [{ retry: { attempts: 1.5 } }, 'retry.attempts: expected int, got 1.5'],
    [
      { effect: 'once', retry: { attempts: 2 } },
      'retry.attempts: expected 1 with effect "once", got 2; omit it, or make the tool "keyed"',
    ],
    [{ verify: () => undefined }, 'verify: expected only with effect "once", got'],
    [
      { effect: 'keyed', inline: true },
      'inline: expected only with effect "read", got true; after the death of a worker, an inline call is executed again: remove it, or correct `effect`',
    ],
    [{ ends: 'yes' }, 'ends: expected boolean, got "yes"'],
    [{ repeat: true }, 'repeat: expected "allow", got true'],
    [{ approval: 'sometimes' }, 'approval: expected "never", "always" or a function, got "somet'],
    [{ catalog: { summary: 'x' } }, 'catalog.category: missing, expected string'],
    [{ execute: undefined }, 'execute: expected a function, got undefined'],
    [{ describe: 'x' }, 'describe: expected a function, got "x"'],
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
    expect(() => schemaOf(input)).toThrow(
      'tool "lookup": `input` has parts that JSON cannot express',
    );
  });

  it('names all such paths at once', () => {
    const input = z.object({ b: z.date(), a: z.bigint() });
    expect(() => schemaOf(input)).toThrow('"a" (bigint), "b" (date)');
  });

  it('describes what the model writes: before transforms, with optional defaults', () => {
    const input = z.object({ n: z.string().transform(Number), d: z.number().default(3) });
    expect(schemaOf(input)).toEqual({
      additionalProperties: false,
      properties: { n: { type: 'string' }, d: { default: 3, type: 'number' } },
      required: ['n'],
      type: 'object',
    });
  });

  it('sorts keywords and keeps the order of properties, even of one named "properties"', () => {
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
