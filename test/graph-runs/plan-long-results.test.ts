import { expect, test } from 'vitest';
import { z } from 'zod';
import { planCalls, resultsOf } from '../../src/core/plan/plan-batch.js';
import { EMPTY_PLAN, planValue } from '../../src/core/plan/plan.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { runInMemory } from '../../src/testing.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { config } from '../support/scripts.js';

/** An assistant that may load a text of so many characters and store one, and the texts that it has stored. */
function createStore(planning: 'schema' | 'catalog', characters: number) {
  const stored: string[] = [];
  const load = defineTool({
    name: 'load',
    description: 'Loads a text.',
    effect: 'read',
    input: z.object({}),
    execute: () => 'x'.repeat(characters),
  });
  const store = defineTool({
    name: 'store',
    description: 'Stores a text.',
    effect: 'once',
    input: z.object({ text: z.string() }),
    execute: ({ text }) => {
      stored.push(text);
      return 'stored';
    },
  });
  const tools = [load, store];
  const agent = planAndExecute({ name: 'keeper', instructions: 'Keep.', tools, planning });
  return { agent, stored };
}

const storing = (id: string) => ({ text: { $ref: id } });
const PLAN = {
  actions: [
    { id: 'a1', tool: 'load', arguments: {} },
    { id: 'a2', tool: 'store', arguments: storing('a1') },
  ],
};

test.each([
  [60_000, 1],
  [70_000, 0],
])('an action gets a result of %i characters whole, or is not executed', async (length, count) => {
  const { agent, stored } = createStore('schema', length);
  const model = [replyText(JSON.stringify(PLAN)), replyText('Done.')];
  const { outcome, modelRequests } = await runInMemory(agent, { message: 'store it', model });
  expect(stored.map((text) => text.length)).toEqual(Array.from({ length: count }, () => length));
  expect(outcome.answer).toBe('Done.');
  const report = modelRequests.at(-1)?.messages.at(-1);
  const why = 'the result of a1 is too long to be passed on';
  expect(JSON.stringify(report).includes(why)).toBe(count === 0);
});

test.each([
  [7_000, 1],
  [9_000, 0],
])('an action gets a read of %i characters whole, or is not planned', async (length, count) => {
  const { agent, stored } = createStore('catalog', length);
  const model = [
    replyCall('invoke_tool', { tool: 'load', arguments: {} }),
    replyCall('invoke_tool', { tool: 'store', arguments: storing('r1') }),
    replyText('Planned.'),
    ...(count === 0 ? [] : [replyText('Done.')]),
  ];
  const { modelRequests } = await runInMemory(agent, { message: 'store it', model });
  expect(stored.map((text) => text.length)).toEqual(Array.from({ length: count }, () => length));
  const refused = modelRequests[2]?.messages.at(-1);
  const why = 'the result of r1 is too long to be passed on';
  expect(JSON.stringify(refused).includes(why)).toBe(count === 0);
});

test('an action that begins after an interruption gets no part of a result', () => {
  const node = { name: 'do', plan: 'plan', save: 'results' };
  const execute = { ...node, atOnce: 5, timeoutMs: 1, onFailedDependency: 'skip' } as const;
  const [, a2] = PLAN.actions;
  const plan = { ...EMPTY_PLAN, actions: a2 === undefined ? [] : [a2] };
  const graph = { values: { plan: planValue(plan) }, at: null, visited: [] };
  const long = { id: 'node_do_1.a1', ok: true, text: 'x'.repeat(500_000), executed: true };
  const problemIn = (run: Parameters<typeof resultsOf>[0]) => {
    const results = resultsOf(run, execute, [long]);
    const [call] = planCalls(execute, { ...graph, values: { ...graph.values, results } });
    return call?.problem?.message;
  };
  expect(problemIn({ graph, config: config() })).toContain('a1 is too long to be passed on');
  const { revised: _, ...earlier } = config();
  expect(problemIn({ graph, config: earlier })).toBeUndefined();
});
