import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { statusQuery, askUpdate, closeUpdate } from '../../src/workflows/messages/definitions.js';
import { blocked } from '../support/conversation.js';
import { graphAgent, node, ROUTE, RUN } from '../support/graph-agent.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { segmentsOf } from '../support/segments.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

const WITHIN = { timeout: 20_000, interval: 50 };

/**
 * Counts its visits, one function after another, through every kind of node that needs no model.
 */
const counting = graphAgent(
  {
    start: 'first',
    perTurn: ['results'],
    messageTo: 'text',
    nodes: [
      node('first', RUN, { done: 'pick' }),
      node('pick', ROUTE, { on: 'all', off: 'end' }),
      node(
        'all',
        { kind: 'each', over: [1, 2, 3], atOnce: 2, body: RUN, save: 'results' },
        { done: 'below' },
      ),
      node(
        'below',
        { kind: 'graph', graph: 'inner', input: { n: { $path: 'n' } }, save: 'answer' },
        { done: 'last', stopped: 'end', failed: 'end' },
      ),
      node('last', RUN, { done: 'end' }),
    ],
  },
  {
    first: async ({ state }) => ({ patch: { n: Number(state['n'] ?? 0) + 1 } }),
    pick: async () => ({ exit: 'on' }),
    all: async ({ item }) => ({ value: Number(item) * 10 }),
    last: async ({ state }) => ({ patch: { list: [state['answer'] ?? null] } }),
  },
);
const inner = graphAgent(
  { start: 'double', nodes: [node('double', RUN, { done: 'end' })] },
  { double: async ({ state }) => ({ patch: { n: Number(state['n']) * 2 } }) },
  { name: 'inner' },
);

const results = [10, 20, 30].map((value) => ({ ok: true, value }));

test('a run continues as new at every node, with its place and its state', async () => {
  await desk.work([counting, inner], { segment: { steps: 1, bytes: 1e6 } });
  const { outcome, handle } = await desk.run({ agent: 'mail', input: {} });
  expect(outcome.output).toMatchObject({ n: 1, results, answer: { n: 2 }, list: [{ n: 2 }] });
  const segments = await segmentsOf(desk.rig.client, handle.workflowId);
  expect(segments.length).toBeGreaterThan(3);
});

test('an open run makes one pass per message, and per-turn state does not leak into the next', async () => {
  await desk.work([counting, inner]);
  const handle = await desk.rig.start({ agent: 'mail', open: true, message: 'one' });
  await vi.waitFor(async () => {
    expect((await handle.query(statusQuery)).status).toBe('waiting_message');
  }, WITHIN);
  await handle.executeUpdate(askUpdate, { args: [{ message: '', input: { n: 5 } }] });
  await expect(
    handle.executeUpdate(askUpdate, { args: [{ message: '', input: { nn: 5 } }] }),
  ).rejects.toMatchObject({
    cause: {
      message: expect.stringContaining('input.nn: the state of graph "mail" has no such field'),
    },
  });
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  const { outcome } = await desk.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', reason: 'closed' });
  expect(outcome.output).toMatchObject({ n: 6, text: '', answer: { n: 12 } });
});

test('a worker without the function of a node blocks the run under its name, until one has it', async () => {
  const work = { start: 'work', nodes: [node('work', RUN, { done: 'end' })] };
  const worker = await desk.work([graphAgent(work)]);
  const handle = await desk.rig.start({ agent: 'mail', input: {} });
  expect(await blocked(handle)).toMatchObject({
    message: expect.stringContaining('the function of node "work" of graph "mail"'),
  });
  await worker.shutdown();
  await desk.work([graphAgent(work, { work: async () => ({ patch: { n: 1 } }) })]);
  expect((await desk.end(handle)).outcome.output).toEqual({ n: 1 });
});

/** A graph that picks its way to `work`. */
function changing(name: string, state: z.ZodObject, exits: readonly ['on', ...string[]]): Agent {
  return defineGraph({
    name,
    state,
    nodes: ({ run, route }) => ({
      pick: route({ exits, run: async (_, { exit }) => exit('on') }),
      work: run({ run: async () => ({}) }),
    }),
  }).wire({
    start: 'pick',
    edges: { pick: Object.fromEntries(exits.map((exit) => [exit, 'work'])), work: 'end' },
  } as never);
}

test('a deploy that changes a graph blocks its runs where the code no longer fits, until that is back', async () => {
  const before = z.object({ n: z.number().default(0) });
  const names = ['type', 'field', 'exit', 'edge'] as const;
  const first = await desk.work(names.map((name) => changing(name, before, ['on'])));
  const runs = await Promise.all(
    names.map(async (agent) => await desk.rig.start({ agent, open: true, input: {} })),
  );
  const turnEnds = async (turns: number) =>
    await Promise.all(
      runs.map(
        async (handle) =>
          await desk.statusWhere(
            handle,
            ({ status, turn }) => status === 'waiting_message' && turn === turns,
          ),
      ),
    );
  await turnEnds(1);
  await first.shutdown();
  const second = await desk.work([
    changing('type', z.object({ n: z.string().default('') }), ['on']),
    changing('field', before.extend({ more: z.string() }), ['on']),
    changing('exit', before, ['on', 'new']),
    defineGraph({
      name: 'edge',
      state: before,
      nodes: ({ run, route }) => ({
        other: run({ run: async () => ({}) }),
        pick: route({ exits: ['on'], run: async (_, { exit }) => exit('on') }),
        work: run({ run: async () => ({}) }),
        added: run({ run: async () => ({}) }),
      }),
    }).wire({
      start: 'other',
      edges: { other: 'added', added: 'pick', pick: { on: 'work' }, work: 'end' },
    }),
  ]);
  const [type, field, exit, edge] = runs;
  for (const handle of runs)
    await handle.executeUpdate(askUpdate, { args: [{ message: '', input: {} }] });
  const reasons = await Promise.all(
    [type, field, exit].map(async (handle) => handle && (await blocked(handle)).message),
  );
  expect(reasons).toEqual([
    expect.stringMatching(
      /^node "pick" of graph "type" on worker \S+ does not take the state of the run: state\.n: .*start a worker with the code of then/,
    ),
    expect.stringContaining('state.more: the run does not have this required field'),
    expect.stringContaining('has the exit "new", which the run lacks'),
  ]);
  await desk.statusWhere(
    edge ?? expect.unreachable(),
    ({ turn, status }) => turn === 2 && status === 'waiting_message',
  );
  await second.shutdown();
  await desk.work(names.map((name) => changing(name, before, ['on'])));
  await turnEnds(2);
});

test('a cancel ends the function of a node, and the run', async () => {
  await desk.work([
    graphAgent(
      { start: 'work', nodes: [node('work', RUN, { done: 'end' })] },
      {
        work: async (_, { signal }) => {
          desk.did('begun');
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          desk.did('canceled');
          return {};
        },
      },
    ),
  ]);
  const handle = await desk.rig.start({ agent: 'mail', input: {} });
  await desk.untilDone('begun');
  await handle.cancel();
  expect((await desk.end(handle)).outcome).toMatchObject({ status: 'cancelled' });
  await desk.untilDone('canceled');
});

test.each([
  [
    'an unknown field',
    { input: { typo: 1 } },
    'input.typo: the state of graph "mail" has no such field',
  ],
  ['no object', { input: ['x'] }, 'input: expected an object'],
])('an input with %s is refused under its name', async (_, given, message) => {
  await desk.work([counting, inner]);
  const { outcome } = await desk.end(await desk.rig.start({ agent: 'mail', ...given }));
  expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
  expect(outcome.error).toContain(message);
});

test('a state of almost a megabyte is passed on, also to new segments; a larger one is refused', async () => {
  await desk.work(
    [
      graphAgent(
        {
          start: 'grow',
          errorTo: 'error',
          nodes: [
            node('grow', RUN, { done: 'look' }),
            node('look', RUN, { done: 'burst' }),
            node('burst', { ...RUN, attempts: 1 }, { done: 'end', failed: 'shrink' }),
            node('shrink', RUN, { done: 'end' }),
          ],
        },
        {
          grow: async () => ({ patch: { text: 'ä'.repeat(450_000) } }),
          look: async ({ state }) => ({ patch: { n: JSON.stringify(state).length } }),
          burst: async () => ({ patch: { answer: 'ö'.repeat(60_000) } }),
          shrink: async () => ({ patch: { text: '' } }),
        },
      ),
    ],
    { segment: { steps: 1, bytes: 1e7 } },
  );
  const { outcome } = await desk.run({ agent: 'mail', input: {} });
  expect(outcome.output).toEqual({
    text: '',
    n: 450_011,
    error: {
      node: 'burst',
      type: 'too_large',
      message: expect.stringContaining('at most 1000000 fit'),
    },
  });
});
