import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Json } from '../../src/core/text/json.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { graphAgent, node, ROUTE, RUN } from '../support/graph-agent.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

const clerk = defineAgent({
  name: 'clerk',
  instructions: 'x',
  model: 'script',
  description: 'answers',
});
const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ to: z.string() }),
  effect: 'keyed',
  execute: async ({ to }) => {
    desk.did(`pay ${to}`);
    return { paid: to };
  },
});

test('functions change the state, a route and a case choose the way, and the state is the output', async () => {
  await desk.work([
    graphAgent(
      {
        start: 'load',
        answerFrom: 'answer',
        nodes: [
          node('load', RUN, { done: 'sort' }),
          node(
            'sort',
            {
              kind: 'choose',
              cases: [{ exit: 'long', when: { op: 'over', path: 'n', value: 5 } }],
            },
            { long: 'pick', else: 'end' },
          ),
          node('pick', ROUTE, { left: 'done', right: 'end' }),
          node('done', RUN, { done: 'end' }),
        ],
      },
      {
        load: async ({ state }) => {
          const text = textOf(state['text']).trim();
          return { patch: { text, n: text.length } };
        },
        pick: async () => ({ exit: 'left', patch: { answer: 'picked' } }),
        done: async ({ state }) => ({ patch: { answer: `${textOf(state['answer'])} and done` } }),
      },
    ),
  ]);
  const long = await desk.run({ agent: 'mail', input: { text: '  a long text ' } });
  expect(long.outcome).toMatchObject({
    status: 'completed',
    reason: 'answer',
    answer: 'picked and done',
    output: { text: 'a long text', n: 11, answer: 'picked and done' },
    steps: 3,
    toolCalls: 0,
  });
  const short = await desk.run({ agent: 'mail', input: { text: 'ab' } });
  expect(short.outcome).toMatchObject({ answer: '', output: { text: 'ab', n: 2 } });
});

test('a run node costs six events, and a choose node none', async () => {
  const nodes = ['a', 'b', 'c'].map((name, index) =>
    node(name, RUN, { done: ['b', 'c', 'end'][index] ?? 'end' }),
  );
  const functions = Object.fromEntries(nodes.map(({ name }) => [name, async () => ({})]));
  await desk.work([graphAgent({ start: 'a', nodes }, functions)]);
  const three = await desk.run({ agent: 'mail', input: {} });
  await desk.rig.stopWorkers();
  const choose = node('c', { kind: 'choose', cases: [] }, { else: 'end' });
  await desk.work([graphAgent({ start: 'a', nodes: [...nodes.slice(0, 2), choose] }, functions)]);
  const two = await desk.run({ agent: 'mail', input: {} });
  const count = (ended: typeof two): number => ended.history.events?.length ?? 0;
  expect(count(three) - count(two)).toBeLessThanOrEqual(6);
});

describe('a node that fails', () => {
  const failing = { work: () => Promise.reject(new Error('no such order')) };

  test('leaves by its failure exit, and its error is in the state', async () => {
    await desk.work([
      graphAgent(
        {
          start: 'work',
          errorTo: 'error',
          nodes: [
            node('work', RUN, { done: 'end', failed: 'tell' }),
            node('tell', RUN, { done: 'end' }),
          ],
        },
        {
          ...failing,
          tell: async ({ state }) => ({ patch: { answer: JSON.stringify(state['error']) } }),
        },
      ),
    ]);
    const { outcome } = await desk.run({ agent: 'mail', input: {} });
    expect(outcome.output).toMatchObject({
      error: { node: 'work', type: 'tool_error', message: 'no such order' },
    });
  });

  test('ends the run, which names the node, if it has no such exit', async () => {
    await desk.work([
      graphAgent({ start: 'work', nodes: [node('work', RUN, { done: 'end' })] }, failing),
    ]);
    const { outcome } = await desk.run({ agent: 'mail', input: {} });
    expect(outcome).toMatchObject({
      status: 'failed',
      reason: 'error',
      error: 'node "work": no such order',
    });
  });

  test('is named once, also in an error of the graph itself', async () => {
    const graph = defineGraph({
      name: 'typed',
      state: z.object({ n: z.number().default(0) }),
      nodes: ({ run }) => ({
        work: run({ attempts: 1, run: async () => JSON.parse('{"n":"x"}') as { n: number } }),
      }),
    }).wire({ start: 'work', edges: { work: 'end' } });
    await desk.work([graph]);
    const { outcome } = await desk.run({ agent: 'typed', input: {} });
    expect(outcome.error).toBe('node "work": returned field "n": expected number, got "x"');
  });
});

test('a loop ends at the cap of its node', async () => {
  await desk.work([
    graphAgent(
      {
        start: 'count',
        nodes: [node('count', { ...RUN, maxVisits: 3 }, { done: 'count', capped: 'end' })],
      },
      { count: async ({ state }) => ({ patch: { n: Number(state['n'] ?? 0) + 1 } }) },
    ),
  ]);
  const { outcome } = await desk.run({ agent: 'mail', input: {} });
  expect(outcome.output).toEqual({ n: 3 });
});

test('agents, tools, and lists: the values are saved in the order of the items', async () => {
  desk.script(['summary of a', 'summary of b']);
  await desk.work([
    clerk,
    graphAgent(
      {
        start: 'ask',
        nodes: [
          node(
            'ask',
            {
              kind: 'agent',
              agent: 'clerk',
              message: { $text: ['Sum up ', { $path: 'text' }] },
              save: 'answer',
            },
            { done: 'pay', stopped: 'end', failed: 'end' },
          ),
          node(
            'pay',
            { kind: 'tool', tool: 'pay', arguments: { to: { $path: 'text' } }, save: 'n' },
            { done: 'all' },
          ),
          node(
            'all',
            {
              kind: 'each',
              over: { $path: 'list' },
              atOnce: 2,
              body: { ...RUN },
              save: 'results',
            },
            { done: 'end' },
          ),
        ],
      },
      {
        all: async ({ item }) => {
          if (item === 'bad') throw new Error('bad item');
          return { value: `${textOf(item)}!` };
        },
      },
      { tools: [pay] },
    ),
  ]);
  const input = { text: 'x', list: ['one', 'bad', 'one', 'two'] };
  const { outcome } = await desk.run({ agent: 'mail', input });
  expect(outcome.output).toEqual({
    ...input,
    answer: 'summary of a',
    n: { paid: 'x' },
    results: [
      { ok: true, value: 'one!' },
      { ok: false, error: { type: 'tool_error', message: 'bad item' } },
      { ok: true, value: 'one!' },
      { ok: true, value: 'two!' },
    ],
  });
  expect(desk.done).toEqual(['pay x']);
  expect(outcome).toMatchObject({ toolCalls: 1 });
});

test('a model decides, and its tools are nodes', async () => {
  desk.script([{ pay: { to: 'ann' } }, 'it is paid']);
  await desk.work([
    graphAgent(
      {
        start: 'decide',
        answerFrom: 'answer',
        messageTo: 'text',
        nodes: [
          node('decide', { kind: 'decide', save: 'answer' }, { pay: 'pay', text: 'end' }),
          node('pay', { kind: 'tool', tool: 'pay' }, { done: 'decide', failed: 'decide' }),
        ],
      },
      {},
      { tools: [pay], model: 'script' },
    ),
  ]);
  const { outcome } = await desk.run({ agent: 'mail', message: 'pay ann' });
  expect(outcome).toMatchObject({
    status: 'completed',
    answer: 'it is paid',
    output: { text: 'pay ann', answer: 'it is paid' },
    steps: 2,
    toolCalls: 1,
  });
  expect(desk.lastResults()).toEqual(['{"paid":"ann"}']);
});

describe('a node that asks a person', () => {
  const nodes = [
    node(
      'ask',
      { kind: 'confirm', show: { $text: ['Send ', { $path: 'text' }, '?'] }, expiresMs: 60_000 },
      { yes: 'send', no: 'end' },
    ),
    node('send', RUN, { done: 'end' }),
  ];
  const functions = { send: async () => ({ patch: { answer: 'sent' } }) };

  test.each([
    { says: 'yes', output: { text: 'it', answer: 'sent' } },
    { says: 'no', output: { text: 'it' } },
  ])('continues with the answer $says', async ({ says, output }) => {
    await desk.work([graphAgent({ start: 'ask', nodes }, functions)]);
    const { handle, requests } = await desk.asked({ agent: 'mail', input: { text: 'it' } });
    expect(requests[0]).toMatchObject({
      kind: 'question',
      question: 'Send it?',
      options: ['yes', 'no'],
    });
    await desk.decide(handle, { as: 'answer', result: says });
    expect((await desk.end(handle)).outcome.output).toEqual(output);
  });
});

describe('a rule about a tool', () => {
  const graph = graphAgent(
    {
      start: 'pay',
      nodes: [
        node(
          'pay',
          { kind: 'tool', tool: 'pay', arguments: { to: { $path: 'text' } }, save: 'n' },
          { done: 'end', failed: 'end' },
        ),
      ],
    },
    {},
    { tools: [pay], rules: [{ tool: 'pay', then: 'ask' }] },
  );

  test('applies to the call of a node: nothing happens before a person approves it', async () => {
    await desk.work([graph]);
    const { handle, requests } = await desk.asked({ agent: 'mail', input: { text: 'ann' } });
    expect(requests[0]).toMatchObject({ kind: 'approval', tool: 'pay', arguments: '{"to":"ann"}' });
    expect(desk.done).toEqual([]);
    await desk.decide(handle, { as: 'approve' });
    const { outcome } = await desk.end(handle);
    expect(outcome.output).toEqual({ text: 'ann', n: { paid: 'ann' } });
    expect(desk.done).toEqual(['pay ann']);
  });

  test('takes the failure exit if the call is denied, or if nobody can decide', async () => {
    await desk.work([graph]);
    const { handle } = await desk.asked({ agent: 'mail', input: { text: 'ann' } });
    await desk.decide(handle, { as: 'deny' });
    expect((await desk.end(handle)).outcome.output).toEqual({ text: 'ann' });
    const input = { agent: 'mail', input: { text: 'bob' }, unattended: 'deny' } as const;
    expect((await desk.run(input)).outcome.output).toEqual({ text: 'bob' });
    expect(desk.done).toEqual([]);
  });
});
