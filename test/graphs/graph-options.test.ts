import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { definitionAt } from '../../src/core/state/turn-definition.js';
import { defineAgent, defineTool } from '../../src/index.js';
import { defineGraph, planAndExecute } from '../../src/graphs.js';
import { nodeContext } from '../../src/testing.js';
import { config } from '../support/scripts.js';

const only = z.object({ text: z.string() });
const ends = { start: 'a', edges: { a: 'end' } } as never;
const runs = ({ run }: { run: (options: object) => unknown }) => ({ a: run({ run: () => ({}) }) });

describe('the options of an agent', () => {
  test.each([
    ['toolChoice', 'required', 'give `toolChoice` to the decide node'],
    ['output', z.string(), 'answerFrom'],
    ['prompts', {}, 'an agent that a node calls'],
    ['toolExposure', 'catalog', 'planning: "catalog"'],
    ['onPlainText', 'fail', 'exit `text`'],
  ])('that a graph does not have are refused by name: %s', (name, value, fix) => {
    const given = { name: 'g', state: only, nodes: runs, [name]: value };
    expect(() => defineGraph(given as never)).toThrow(
      `graph "g": ${name}: expected no such option`,
    );
    expect(() => defineGraph(given as never)).toThrow(fix);
    const planner = { name: 'p', instructions: 'x', [name]: value };
    expect(() => planAndExecute(planner as never)).toThrow(`planAndExecute "p": ${name}`);
  });

  test('that make sense are passed on, and agents are tools of the model', () => {
    const desk = defineAgent({ name: 'desk', instructions: 'x', description: 'A desk.' });
    const rest = { remember: async () => {}, retrieve: async () => [], compaction: false } as const;
    const planner = planAndExecute({
      name: 'p',
      instructions: 'x',
      agents: [desk],
      texts: { closing: 'Stop now.' },
      forkFrom: ['desk'],
      retention: '90 days',
      ...rest,
    });
    expect(planner.tools.names).toEqual(['desk']);
    expect(planner.agents).toEqual([desk]);
    expect(planner).toMatchObject({
      compaction: null,
      forkFrom: ['desk'],
      retentionMs: 90 * 24 * 3_600_000,
      texts: { closing: 'Stop now.' },
    });
    expect(planner.retrieve).not.toBeNull();
    expect(planner.remember).not.toBeNull();
  });

  test('a decide node may require a call', () => {
    const desk = defineAgent({ name: 'desk', instructions: 'x', description: 'A desk.' });
    const graph = defineGraph({
      name: 'g',
      instructions: 'x',
      state: only,
      agents: [desk],
      nodes: ({ decide, tool }) => ({
        pick: decide({ tools: ['desk'], toolChoice: 'required' }),
        call: tool({ tool: 'desk' }),
      }),
    }).wire({ start: 'pick', edges: { pick: { desk: 'call', text: 'end' }, call: 'end' } });
    expect(graph.graph.definition.nodes[0]).toMatchObject({
      kind: 'decide',
      toolChoice: 'required',
    });
    const { definition } = graph.graph;
    const base = { ...config().definition, graph: definition };
    expect(definitionAt(base, 'pick').toolChoice).toBe('required');
    expect(definitionAt(base, 'call').toolChoice).toBe('auto');
  });
});

test.each([
  ['a map', z.map(z.string(), z.string()), 'z.map()'],
  ['a date', z.date().optional(), 'z.date()'],
  ['a list of sets', z.array(z.object({ all: z.set(z.string()) })), 'z.set()'],
])('a state that JSON cannot hold is refused: %s', (_, type, kind) => {
  const given = { name: 'g', state: z.object({ at: type }), nodes: runs };
  expect(() => defineGraph(given as never)).toThrow(
    `state.at: expected a type whose values are JSON, got ${kind}`,
  );
  const coerced = { ...given, state: z.object({ at: z.coerce.date() }) };
  expect(() => defineGraph(coerced as never).wire(ends)).not.toThrow();
});

describe('a field that cannot hold what a node saves in it', () => {
  const kind = z.object({ urgent: z.boolean() });
  const sorter = defineAgent({ name: 'sorter', instructions: 'x', output: kind });
  const clerk = defineAgent({ name: 'clerk', instructions: 'x' });
  const prompted = defineAgent({
    name: 'prompted',
    instructions: 'x',
    output: kind,
    prompts: { names: { text: 'x', output: z.array(z.string()) }, plain: { text: 'y' } },
  });
  const other = defineGraph({
    name: 'other',
    state: z.object({ text: z.string().optional() }),
    nodes: ({ run }) => ({ a: run({ run: async () => ({ text: 'x' }) }) }),
  }).wire({ start: 'a', edges: { a: 'end' } });
  const given = { name: 't', description: 'x', input: z.object({}), effect: 'read' } as const;
  const execute = async () => 1;
  const tool = defineTool({ ...given, output: z.number(), execute });
  const message = () => 'go';
  const state = z.object({
    text: z.string().optional(),
    count: z.coerce.number().default(1),
    flag: z.boolean().default(false).nullable(),
    kind: kind.optional(),
    either: z.union([z.string(), z.number()]).optional(),
    any: z.json().optional(),
    list: z.array(z.json()).default([]),
    names: z.array(z.string()).optional(),
    objects: z.array(z.object({ ok: z.boolean() })).optional(),
  });
  type Kinds = Readonly<Record<string, (options: object) => unknown>>;
  const define = (node: (kinds: Kinds) => unknown) =>
    defineGraph({
      name: 'g',
      state,
      instructions: 'x',
      tools: [tool],
      nodes: (kinds) => ({ a: node(kinds as unknown as Kinds) }) as never,
    });

  test.each<[string, string, string, string, (kinds: Kinds) => unknown]>([
    [
      'save',
      'an object',
      'flag',
      'true or false or null',
      (k) => k['agent']?.({ agent: sorter, message, save: 'flag' }),
    ],
    [
      'save',
      'a text',
      'kind',
      'an object',
      (k) => k['agent']?.({ agent: clerk, message, save: 'kind' }),
    ],
    [
      'save',
      'an object',
      'text',
      'a text',
      (k) => k['graph']?.({ graph: other, input: () => ({}), save: 'text' }),
    ],
    [
      'save',
      'an object',
      'text',
      'a text',
      (k) => k['graph']?.({ graph: 'other', input: () => ({}), save: 'text' }),
    ],
    [
      'save',
      'an object',
      'list',
      'a list',
      (k) => k['agent']?.({ agent: other, message, save: 'list' }),
    ],
    [
      'save',
      'a list',
      'text',
      'a text',
      (k) => k['agent']?.({ agent: prompted, prompt: 'names', save: 'text' }),
    ],
    [
      'save',
      'an object',
      'text',
      'a text',
      (k) => k['agent']?.({ agent: prompted, prompt: 'plain', save: 'text' }),
    ],
    ['save', 'an object', 'text', 'a text', (k) => k['decide']?.({ output: kind, save: 'text' })],
    ['save', 'a text', 'list', 'a list', (k) => k['decide']?.({ save: 'list' })],
    [
      'save',
      'a number or a text',
      'list',
      'a list',
      (k) => k['tool']?.({ tool, arguments: () => ({}), save: 'list' }),
    ],
    [
      'save',
      'a list',
      'either',
      'a text or a number',
      (k) => k['each']?.({ over: () => [1], run: async () => 1, save: 'either' }),
    ],
    ['save', 'an object', 'text', 'a text', (k) => k['plan']?.({ save: 'text' })],
    ['answer', 'a text', 'list', 'a list', (k) => k['plan']?.({ save: 'any', answer: 'list' })],
    ['save', 'an object', 'list', 'a list', (k) => k['execute']?.({ plan: 'any', save: 'list' })],
    ['save', 'a text', 'flag', 'true or false or null', (k) => k['answer']?.({ save: 'flag' })],
  ])('is refused: %s of %s in %s', (option, saved, field, held, node) => {
    expect(() => define(node)).toThrow(
      `graph "g": node "a": ${option}: expected a field for ${saved}, got "${field}", which holds ${held}; ` +
        'name another field, or change its type',
    );
  });

  test('is refused: a list whose items are of another type than what an each saves', () => {
    const each = { over: () => [1], run: async () => 1 };
    expect(() => define((k) => k['each']?.({ ...each, save: 'names' }))).toThrow(
      'graph "g": node "a": save: expected a field for a list with an object per item, got "names", ' +
        'whose items are a text; name another field, or change its type',
    );
    expect(() => define((k) => k['each']?.({ ...each, save: 'list' }))).not.toThrow();
    expect(() => define((k) => k['each']?.({ ...each, save: 'objects' }))).not.toThrow();
  });

  test('is refused only if that is certain', () => {
    const nodes: readonly ((kinds: Kinds) => unknown)[] = [
      (k) => k['agent']?.({ agent: 'sorter', message, save: 'text' }),
      (k) => k['agent']?.({ agent: sorter, message, save: 'kind' }),
      (k) => k['decide']?.({ save: 'count' }),
      (k) => k['decide']?.({ save: 'either' }),
      (k) => k['tool']?.({ tool, arguments: () => ({}), save: 'text' }),
      (k) => k['each']?.({ over: () => [1], run: async () => 1, save: 'any' }),
    ];
    for (const node of nodes) expect(() => define(node)).not.toThrow();
  });
});

test('a node shows a value deep in a field of the state once', async () => {
  const graph = defineGraph({
    name: 'mail',
    state: z.object({ parts: z.array(z.object({ error: z.string() })) }),
    nodes: ({ run }) => ({
      load: run({ run: async () => ({ parts: [{ error: 7 }] }) as never }),
    }),
  }).wire({ start: 'load', edges: { load: 'end' } });
  const { load } = Object.fromEntries(graph.graph.functions);
  await expect(load?.({ state: {} }, nodeContext())).rejects.toThrow(
    /returned field "parts": \[0\]\.error: expected string, got 7$/,
  );
});
