import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { normalizedPlan, planFormat } from '../../src/activities/model/model-request.js';
import type { ToolDefinition } from '../../src/core/definition/tool-definition.js';
import type { JsonObject } from '../../src/core/text/json.js';
import { planProblem } from '../../src/core/plan/plan.js';
import { isStrictSchema } from '../../src/models/wire/refusals.js';
import { toStrictSchema } from '../../src/output/strict-schema.js';
import { conformProblem, strictProblem } from '../../src/testing/strict-check.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { toToolDefinition } from '../../src/tools/tool.js';

const SHAPES = [
  z.object({ q: z.string(), limit: z.number().int().max(50).optional() }),
  z.object({ order: z.number().int(), euros: z.number(), reason: z.enum(['broken', 'late']) }),
  z.object({ to: z.array(z.string()), subject: z.string(), cc: z.array(z.string()).optional() }),
  z.object({
    customer: z.object({ name: z.string(), address: z.object({ street: z.string() }) }),
    items: z.array(z.object({ sku: z.string(), n: z.number().int() })),
  }),
  z.object({ from: z.string(), path: z.string(), inner: z.object({ from: z.string() }) }),
  z.object({ labels: z.record(z.string(), z.string()) }),
  z.object({
    what: z.union([
      z.object({ id: z.string(), kind: z.literal('a'), n: z.number() }),
      z.object({ id: z.string(), kind: z.literal('b') }),
    ]),
  }),
  z.object({}),
];

const toolsOf = (count: number): readonly ToolDefinition[] =>
  Array.from({ length: count }, (_, index) =>
    toToolDefinition(
      defineTool({
        name: `tool_${index}`,
        description: 'A tool.',
        input: SHAPES[index % SHAPES.length] ?? z.object({}),
        effect: 'keyed',
        execute: () => 'done',
      }),
    ),
  );
const mcpTool = (name: string, parameters: JsonObject): ToolDefinition => ({
  ...(toolsOf(1)[0] as ToolDefinition),
  name,
  parameters,
});

describe('the schema of a plan', () => {
  test.each([1, 8, 20, 100])('is strict, with the arguments of each of %d tools', (count) => {
    const { schema } = planFormat(toolsOf(count));
    expect(strictProblem(schema)).toBeNull();
    expect(isStrictSchema(schema)).toBe(true);
    expect(JSON.stringify(schema).length).toBeLessThan(1_000 * count + 2_000);
  });

  test('allows the arguments, references in their places, and nothing else', () => {
    const { schema } = planFormat(toolsOf(8));
    const plan = (index: number, args: unknown) => ({
      actions: [{ tool: `tool_${index}`, id: 'a1', arguments: args, after: [] }],
      answer: null,
    });
    const fault = (index: number, args: unknown) => conformProblem(plan(index, args), schema);
    const ref = { from: 'a1', path: 'data.id' };
    expect(fault(0, { q: 'x', limit: null })).toBeNull();
    expect(fault(0, { q: ref, limit: ref })).toBeNull();
    expect(fault(2, { to: [ref, 'b'], subject: 's', cc: ref })).toBeNull();
    expect(fault(3, { customer: { name: ref, address: ref }, items: [ref] })).toBeNull();
    expect(fault(5, '{"labels":{"a":"b"}}')).toBeNull();
    expect(fault(6, { what: { kind: 'a', id: ref, n: 1 } })).toBeNull();
    expect(fault(0, {})).not.toBeNull();
    expect(fault(0, { q: 'x', limit: null, more: 1 })).not.toBeNull();
    expect(fault(7, {})).toBeNull();
  });

  test('takes the arguments of a tool without a strict schema as text', () => {
    const open = { type: 'object' } as const;
    const parts: readonly JsonObject[] = [
      open,
      { type: 'object', properties: { data: open } },
      { type: 'object', properties: { x: { $ref: '#/definitions/x' } }, definitions: { x: open } },
      { type: 'object', oneOf: [{ properties: { a: { type: 'string' } } }] },
      { type: 'object', properties: { self: { $ref: '#' } } },
      { type: 'object', additionalProperties: { type: 'string' } },
    ];
    for (const parameters of parts) {
      const { schema } = planFormat([mcpTool('do', parameters), ...toolsOf(1)]);
      expect(strictProblem(schema)).toBeNull();
      const action = { tool: 'do', id: 'a1', arguments: '{"data":{"n":1}}', after: [] };
      expect(conformProblem({ actions: [action], answer: null }, schema)).toBeNull();
    }
  });

  test('is the general one, and not strict, if it would be too large', () => {
    const properties = { ['x'.repeat(5_000)]: { type: 'string' } };
    const many = Array.from({ length: 30 }, (_, index) =>
      mcpTool(`tool_${index}`, { type: 'object', properties }),
    );
    const { schema } = planFormat(many);
    expect(isStrictSchema(schema)).toBe(false);
    expect(schema).toHaveProperty('properties.actions.items.properties.arguments.type', 'object');
  });
});

test('a plan is read in each of its forms', () => {
  const tools = [...toolsOf(6), mcpTool('open', { type: 'object' })];
  const plan = {
    actions: [
      { tool: 'tool_0', id: 'a1', arguments: { q: 'x', limit: null }, after: null },
      { tool: 'tool_0', id: 'a2', arguments: { q: { from: 'a1', path: '' }, limit: 3 }, after: [] },
      { tool: 'open', id: 'a3', arguments: '{"deep":[{"from":"a2","path":"id"}]}', after: ['a1'] },
      { tool: 'tool_0', id: 'a4', arguments: { q: { $ref: 'a1', path: 'id' } } },
      { tool: 'open', id: 'a6', arguments: '{"order":12345678901234567890,"at":[1e400]}' },
      { tool: 'open', id: 'a5', arguments: { range: { from: '2026', path: 'x' } }, after: [] },
    ],
    answer: null,
  };
  const read = normalizedPlan(plan, tools) as { actions: { arguments: unknown }[] };
  expect(read.actions.map((one) => one.arguments)).toEqual([
    { q: 'x' },
    { q: { $ref: 'a1', path: '' }, limit: 3 },
    { deep: [{ $ref: 'a2', path: 'id' }] },
    { q: { $ref: 'a1', path: 'id' } },
    { order: '12345678901234567890', at: ['1e400'] },
    { range: { from: '2026', path: 'x' } },
  ]);
  const names = tools.map(({ name }) => name);
  expect(planProblem(read, { tools: names, maxActions: 9 })).toBeNull();
  for (const odd of [null, 1, 'x', [], {}, { actions: 1 }, { actions: [1, null, {}] }]) {
    expect(() => normalizedPlan(odd, tools)).not.toThrow();
  }
});

describe('a schema in strict form', () => {
  test.each<[string, JsonObject]>([
    ['an object without names', { type: 'object' }],
    ['a nullable object without names', { type: ['object', 'null'] }],
    ['any object', { type: 'object', additionalProperties: true }],
    ['any value', {}],
    ['an object with alternatives', { type: 'object', properties: {}, anyOf: [] }],
    ['a list of any objects', { type: 'array', items: { type: 'object' } }],
    ['an unknown reference', { $ref: '#/definitions/x' }],
  ])('does not exist for %s', (_, part) => {
    expect(toStrictSchema({ type: 'object', properties: { part } }).ok).toBe(false);
  });

  test('puts first what tells the objects of a union apart', () => {
    const object = (properties: JsonObject): JsonObject => ({
      type: 'object',
      properties,
      required: Object.keys(properties),
    });
    const text = { type: 'string' };
    const union = (...anyOf: JsonObject[]) =>
      toStrictSchema({ type: 'object', properties: { part: { anyOf } }, required: ['part'] });
    const kinds = ['a', 'b'].map((kind) => object({ id: text, kind: { ...text, const: kind } }));
    for (const strict of [
      union(...kinds),
      union(object({ id: text, x: text }), object({ id: text, y: text })),
    ]) {
      expect(strict.ok && strictProblem(strict.schema)).toBeNull();
    }
    expect(union(object({ id: text }), object({ id: text })).ok).toBe(false);
  });

  const leaf: fc.Arbitrary<JsonObject> = fc.constantFrom<JsonObject[]>(
    { type: 'string' },
    { type: ['string', 'null'] },
    { type: 'object' },
    { type: ['object', 'null'], properties: { a: { type: 'string' } } },
    { enum: ['a', 1, null] },
    { const: 'x' },
    { $ref: '#/$defs/d' },
    { $ref: '#/definitions/d' },
    { type: 'array' },
    { type: 'string', format: 'uri', pattern: '(?=a)b', minLength: 2, default: 'x' },
    {},
  );
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc
        .tuple(fc.dictionary(fc.constantFrom('a', 'b', 'from'), tie('schema')), fc.boolean())
        .map(([properties, isRequired]): JsonObject => ({
          type: 'object',
          properties,
          ...(isRequired && { required: Object.keys(properties) }),
        })),
      fc
        .array(tie('schema'), { minLength: 1, maxLength: 3 })
        .map((anyOf): JsonObject => ({ anyOf })),
      tie('schema').map((items): JsonObject => ({ type: 'array', items })),
    ),
  }));

  test('is one that the provider accepts, whatever schema it is made from', () => {
    fc.assert(
      fc.property(schema, schema, (part, d) => {
        const given = { type: 'object', properties: { part }, $defs: { d } };
        const strict = toStrictSchema(given);
        if (strict.ok) {
          expect(strictProblem(strict.schema)).toBeNull();
          expect(isStrictSchema(strict.schema)).toBe(true);
        }
        if (isStrictSchema(given)) expect(strictProblem(given)).toBeNull();
        const plan = planFormat([mcpTool('do', given)]);
        expect(strictProblem(plan.schema)).toBeNull();
      }),
      { numRuns: 300 },
    );
  });
});
