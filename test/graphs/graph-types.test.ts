import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineAgent, defineTool, type PerdureClient } from '../../src/index.js';
import { cases, defineGraph, planState, text, type GraphInput } from '../../src/graphs.js';

// The compiler checks this file: each line below `@ts-expect-error` has to be an error.
const state = z.object({
  text: z.string(),
  answer: z.string().optional(),
  count: z.number().default(1),
  docs: z.array(z.object({ id: z.string() })).default([]),
});

const search = defineTool({
  name: 'search',
  description: 'Searches.',
  effect: 'read',
  input: z.object({}),
  execute: async () => 'found',
});

const unwired = defineGraph({
  name: 'typed',
  state,
  instructions: 'Decide.',
  tools: [search],
  nodes: ({ run, route, choose, each, decide }) => ({
    load: run({
      run: async (s) => {
        expectTypeOf(s.text).toEqualTypeOf<string>();
        expectTypeOf(s.answer).toEqualTypeOf<string | undefined>();
        expectTypeOf(s.count).toEqualTypeOf<number>();
        return { text: s.text, docs: [{ id: 'a' }] };
      },
    }),
    page: route({
      exits: ['paged', 'none'],
      run: async (_, { exit }) => exit('paged', { count: 2 }),
    }),
    sort: choose({ on: (s) => cases({ large: s.count.over(5) }) }),
    all: each({
      over: (s) => s.docs,
      run: async (_, item: { readonly id: string }) => item.id,
    }),
    constructor: run({ run: async () => ({}) }),
    think: decide({ tools: ['search'] }),
  }),
});

/** Compiled and never called. */
export function wirings(): void {
  const edges = {
    load: 'page',
    page: { paged: 'sort', none: 'end' },
    sort: { large: 'all', else: 'end' },
    all: { done: 'constructor', failed: 'end' },
    constructor: 'think',
    think: { search: 'end', text: 'end' },
  } as const;
  unwired.wire({ start: 'load', edges });
  // @ts-expect-error -- unknown start
  unwired.wire({ start: 'lod', edges });
  // @ts-expect-error -- unknown target
  unwired.wire({ start: 'load', edges: { ...edges, load: 'lod' } });
  // @ts-expect-error -- unknown target in a table
  unwired.wire({ start: 'load', edges: { ...edges, page: { paged: 'srt', none: 'end' } } });
  // @ts-expect-error -- forgotten exit
  unwired.wire({ start: 'load', edges: { ...edges, page: { paged: 'end' } } });
  unwired.wire({
    start: 'load',
    // @ts-expect-error -- an exit that does not exist
    edges: { ...edges, page: { paged: 'end', none: 'end', x: 'end' } },
  });
  // @ts-expect-error -- several exits need a table
  unwired.wire({ start: 'load', edges: { ...edges, sort: 'end' } });
  // @ts-expect-error -- the tool's exit is forgotten
  unwired.wire({ start: 'load', edges: { ...edges, think: { text: 'end' } } });
  // @ts-expect-error -- a node that does not exist
  unwired.wire({ start: 'load', edges: { ...edges, lod: 'end' } });
  const { constructor: _, ...without } = edges;
  // @ts-expect-error -- forgotten node with the name of a prototype's property
  unwired.wire({ start: 'load', edges: without });

  // One mistake is one error: the compiler does not also complain about the wiring.
  defineGraph({
    name: 'cascade',
    state,
    // @ts-expect-error -- an unknown option
    answrFrom: 'answer',
    nodes: ({ run }) => ({ load: run({ run: async () => ({}) }) }),
  }).wire({ start: 'load', edges: { load: 'end' } });

  defineGraph({
    name: 'faults',
    state,
    // @ts-expect-error -- unknown field
    messageTo: 'txet',
    // @ts-expect-error -- unknown field
    errorTo: 'err',
    // @ts-expect-error -- unknown field
    perTurn: ['cuont'],
    nodes: ({ run, route, agent, choose, each, graph }) => ({
      // @ts-expect-error -- a graph's result is an object
      graph: graph({ graph: 'other', input: () => ({}), save: 'text' }),
      // @ts-expect-error -- wrong type in a patch
      wrong: run({ run: async () => ({ text: 7 }) }),
      // @ts-expect-error -- unknown field in a patch
      unknown: run({ run: async () => ({ text: 'a', txet: 'b' }) }),
      // @ts-expect-error -- unknown field only
      alone: run({ run: async () => ({ txet: 'b' }) }),
      // @ts-expect-error -- the state has no such field
      reads: run({ run: async (s) => ({ text: s.txet }) }),
      // @ts-expect-error -- an exit that is not declared
      exit: route({ exits: ['a'], run: async (__, { exit }) => exit('b') }),
      // @ts-expect-error -- wrong patch of an exit
      patch: route({ exits: ['a'], run: async (__, { exit }) => exit('a', { text: 7 }) }),
      // @ts-expect-error -- unknown field in `save`
      save: agent({ agent: 'desk', message: (s) => text`${s.text}`, save: 'anwser' }),
      // @ts-expect-error -- unknown field in a path
      path: agent({ agent: 'desk', message: (s) => text`${s.txet}` }),
      // @ts-expect-error -- a value of another type
      is: choose({ on: (s) => cases({ a: s.count.is('one') }) }),
      // @ts-expect-error -- not a list
      over: each({ over: (s) => s.text, run: async () => 1 }),
    }),
  });
}

test('the types of a graph are those of its state', () => {
  const graph = defineGraph({
    name: 'one',
    state,
    nodes: ({ run }) => ({ toString: run({ run: async () => ({ docs: [{ id: 'a' }] }) }) }),
  }).wire({ start: 'toString', edges: { toString: 'end' } });
  expectTypeOf<GraphInput<typeof graph>>().toEqualTypeOf<Partial<z.input<typeof state>>>();
  expect(graph.graph.definition.nodes).toEqual([
    {
      name: 'toString',
      exits: [{ name: 'done', to: 'end' }],
      kind: 'run',
      timeoutMs: 120_000,
      attempts: 3,
    },
  ]);
});

/** Compiled, never called: each marked line must not compile. */
export function wrongInputs(client: PerdureClient): void {
  const graph = defineGraph({
    name: 'one',
    state,
    nodes: ({ run }) => ({ a: run({ run: async () => ({}) }) }),
  }).wire({ start: 'a', edges: { a: 'end' } });
  void client.start(graph, { input: { text: 'a' } });
  void client.start('one', { input: { anything: 1 } });
  // @ts-expect-error -- a field of another type
  void client.start(graph, { input: { text: 7 } });
  // @ts-expect-error -- the state has no such field
  void client.start(graph, { input: { txet: 'a' } });
  defineGraph({
    name: 'two',
    state: z.object({ text: z.string(), ...planState }),
    nodes: ({ graph: below, decide, confirm, execute, plan }) => ({
      right: below({ graph, input: (s) => ({ text: s.text }) }),
      // @ts-expect-error -- the other graph has no such field
      wrong: below({ graph, input: (s) => ({ txet: s.text }) }),
      // @ts-expect-error -- an object does not fit a field of text
      typed: decide({ output: z.object({ a: z.string() }), save: 'text' }),
      // @ts-expect-error -- a decision under a schema calls no tools
      both: decide({ output: z.string(), tools: ['a'] }),
      // @ts-expect-error -- neither a text nor a plan
      asks: confirm({ expires: '1 day' }),
      // @ts-expect-error -- a plan is saved
      lost: plan({ answer: 'text' }),
      // @ts-expect-error -- the state has no such field
      runs: execute({ plan: 'plna', save: 'results' }),
    }),
  });
}

test('a confirm has the exits of its form', () => {
  const graph = defineGraph({
    name: 'three',
    instructions: 'x',
    tools: [defineTool({ name: 't', description: 'x', input: z.object({}), effect: 'read' })],
    state: z.object({ plan: planState.plan }),
    nodes: ({ plan, confirm }) => ({
      plan: plan({ save: 'plan' }),
      whole: confirm({ plan: 'plan' }),
      plain: confirm({ show: () => 'Go on?' }),
    }),
  });
  const edges = {
    plan: { planned: 'whole', answered: 'end' },
    plain: { yes: 'end', no: 'end' },
  } as const;
  const whole = { yes: 'plain', no: 'end', some: 'end', edit: 'plan' } as const;
  expect(graph.wire({ start: 'plan', edges: { ...edges, whole } }).name).toBe('three');
  // @ts-expect-error -- the wish leads nowhere
  const forgotten = () => graph.wire({ start: 'plan', edges: { ...edges, whole: edges.plain } });
  expect(forgotten).toThrow('exit "some" leads nowhere');
});

/** Compiled, never called: each marked line must not compile. */
export function wrongSaves(): void {
  const kind = z.object({ urgent: z.boolean() });
  const sorter = defineAgent({ name: 'sorter', instructions: 'x', output: kind });
  const clerk = defineAgent({ name: 'clerk', instructions: 'x' });
  const message = () => 'go';
  const over = () => [] as never;
  defineGraph({
    name: 'saves',
    state: z.object({
      text: z.string(),
      mood: z.enum(['good', 'bad']).optional(),
      count: z.number().default(1),
      kind: kind.optional(),
      list: z.array(z.unknown()).default([]),
      ...planState,
      any: z.json(),
    }),
    nodes: ({ agent, decide, each, plan, execute, answer }) => ({
      a: agent({ agent: sorter, message, save: 'kind' }),
      b: agent({ agent: clerk, message, save: 'text' }),
      c: agent({ agent: 'sorter', message, save: 'kind' }),
      d: agent({ agent: sorter, prompt: 'own', save: 'text' }),
      e: decide({ output: kind, save: 'kind' }),
      f: decide({ save: 'mood' }),
      g: each({ over, run: async () => 1, save: 'list' }),
      h: plan({ save: 'plan', answer: 'text' }),
      i: execute({ plan: 'plan', save: 'results' }),
      j: answer({ save: 'any' }),
      // @ts-expect-error -- an object into a number
      k: agent({ agent: sorter, message, save: 'count' }),
      // @ts-expect-error -- an object into a number
      l: decide({ output: kind, save: 'count' }),
      // @ts-expect-error -- a text into a number
      m: decide({ save: 'count' }),
      // @ts-expect-error -- a list into a text
      n: each({ over, run: async () => 1, save: 'text' }),
      // @ts-expect-error -- a plan into a text
      o: plan({ save: 'text' }),
      // @ts-expect-error -- a text into a number
      p: plan({ save: 'plan', answer: 'count' }),
      // @ts-expect-error -- results into a text
      q: execute({ plan: 'plan', save: 'text' }),
      // @ts-expect-error -- a text into a number
      r: answer({ save: 'count' }),
    }),
  });
}
