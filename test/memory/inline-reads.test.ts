import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { AgentOptions } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import {
  type MemoryRun,
  pauseRun,
  replyCall,
  replyCalls,
  replyText,
  resumeRun,
  runInMemory,
} from '../../src/testing.js';
import type { ScriptStep } from '../../src/testing/script.js';
import { payloadValue } from '../../src/temporal/server-answers.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { expectReplays, textsOf, useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

/** A tool that reads, inline or as an activity. */
const find = (inline: boolean) =>
  defineTool({
    name: 'find',
    description: 'Finds something.',
    effect: 'read',
    ...(inline && { inline }),
    input: z.object({ n: z.number() }),
    execute: ({ n }) => `found ${n}`,
  });
const finds = (...numbers: readonly number[]): ScriptStep =>
  replyCalls(numbers.map((n) => ({ name: 'find', arguments: { n } })));

/** How many inline batches and activities of calls the history of one run has. */
function executionsOf(
  { history }: Pick<MemoryRun, 'history'>,
  id: string,
): { batches: number; activities: number } {
  const events = history
    .filter((one) => one.id === id)
    .flatMap((one) => (one.history.events ?? []).map(decodeEvent));
  const isOf = (type: string, activity: string): number =>
    events.filter(
      (event) => event.type === type && 'activity' in event && event.activity === activity,
    ).length;
  return { batches: isOf('local', 'runReads'), activities: isOf('scheduled', 'runTool') };
}

describe('inline reads obey what ordinary ones obey', () => {
  const scenarios: Readonly<
    Record<
      string,
      { options?: Partial<AgentOptions>; model: readonly ScriptStep[]; expected: object }
    >
  > = {
    'a limit of calls within one reply': {
      options: { limits: { toolCalls: 3 } },
      model: [finds(1, 2, 3, 4, 5), replyText('So far.')],
      expected: { reason: 'toolCalls', toolCalls: 3 },
    },
    'a limit of calls across replies': {
      options: { limits: { toolCalls: 3 } },
      model: [finds(1, 2), finds(3, 4), replyText('So far.')],
      expected: { reason: 'toolCalls', toolCalls: 3 },
    },
    'a limit of calls of the whole run': {
      options: { limits: { run: { toolCalls: 1 } } },
      model: [finds(1, 2), replyText('So far.')],
      expected: { reason: 'toolCalls', toolCalls: 1 },
    },
    'a limit of steps': {
      options: { limits: { steps: 2 } },
      model: [finds(1), finds(2), replyText('So far.')],
      expected: { reason: 'steps', toolCalls: 2 },
    },
    'the guard of equal reads': {
      model: [finds(1), finds(1), finds(1), replyText('Nothing new.')],
      expected: { reason: 'no_progress', toolCalls: 3 },
    },
    'equal reads in one reply': {
      model: [finds(1, 1), replyText('Done.')],
      expected: { reason: 'answer', toolCalls: 2 },
    },
    'a rule that denies': {
      options: {
        rules: [{ tool: 'find', where: { op: 'eq', path: 'n', value: 2 }, then: 'deny' }],
      },
      model: [finds(1, 2, 3), replyText('Done.')],
      expected: { reason: 'answer', toolCalls: 2 },
    },
  };

  test.each(Object.entries(scenarios))('%s', async (_, { options, model, expected }) => {
    const play = async (isInline: boolean): Promise<MemoryRun> => {
      const tools = [find(isInline)];
      const agent = defineAgent({ name: 'a', instructions: 'x', tools, ...options });
      return await runInMemory(agent, { message: 'Find', model });
    };
    const [inline, ordinary] = await Promise.all([play(true), play(false)]);
    expect(inline.outcome).toMatchObject(expected);
    expect(executionsOf(inline, inline.id)).toMatchObject({ activities: 0 });
    expect(executionsOf(ordinary, ordinary.id)).toMatchObject({ batches: 0 });
    expect(inline.effects.map(({ input }) => input)).toEqual(
      ordinary.effects.map(({ input }) => input),
    );
    expect(textsOf(inline)).toEqual(textsOf(ordinary));
    expect(inline.outcome).toEqual(ordinary.outcome);
    await expectReplays(inline);
  });

  test('a pause before the reply', async () => {
    const agent = defineAgent({ name: 'a', instructions: 'x', tools: [find(true)] });
    const run = await runInMemory(agent, {
      message: 'Find',
      model: [finds(1, 2), replyText('Done.')],
      on: { step: { 1: pauseRun() } },
      at: { '1 hour': resumeRun() },
    });
    const events = run.history.flatMap(({ history }) => (history.events ?? []).map(decodeEvent));
    const types = events.map((event) => ('activity' in event ? event.activity : event.type));
    const resumed = events.findIndex(
      (event) => event.type === 'update' && event.request?.name === 'resume',
    );
    expect(resumed).toBeGreaterThan(0);
    expect(types.indexOf('runReads')).toBeGreaterThan(resumed);
    expect(executionsOf(run, run.id)).toEqual({ batches: 1, activities: 0 });
    const [marker] = run.history.flatMap(({ history }) =>
      (history.events ?? []).filter((_, index) => types[index] === 'runReads'),
    );
    // As on a server: Temporal's UI shows it beside the name of the marker.
    expect(payloadValue(marker?.userMetadata?.summary)).toBe('find 1, find 2');
    await expectReplays(run);
  });
});

test('a batch over its budget executes again what was cut off, and only that', async () => {
  const executed: number[] = [];
  const stuck = defineTool({
    name: 'find',
    description: 'Does not end the first time, up to 4.',
    effect: 'read',
    inline: true,
    input: z.object({ n: z.number() }),
    async execute({ n }) {
      const isFirst = !executed.includes(n);
      executed.push(n);
      if (isFirst && n < 5) await new Promise(() => undefined);
      return `found ${n}`;
    },
  });
  const agent = defineAgent({ name: 'a', instructions: 'x', tools: [stuck] });
  const run = await runInMemory(agent, {
    message: 'Find',
    model: [finds(0, 1, 2, 3, 4, 5, 6), finds(7), replyText('Done.')],
  });
  expect(run.outcome).toMatchObject({ status: 'completed', toolCalls: 8 });
  expect(textsOf(run).filter((line) => line.startsWith('tool:'))).toEqual(
    [0, 1, 2, 3, 4, 5, 6, 7].map((n) => `tool: found ${n}`),
  );
  // Five were under way. The others had not begun, and the next reply makes no inline call.
  expect(executed.toSorted((a, b) => a - b)).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7]);
  expect(executionsOf(run, run.id)).toEqual({ batches: 1, activities: 8 });
  await expectReplays(run);
});

describe('a graph executes no call inline', () => {
  const state = z.object({ message: z.string().default(''), answer: z.string().default('') });

  test('that its model chose at a `decide`', async () => {
    const tool = find(true);
    const graph = defineGraph({
      name: 'loop',
      instructions: 'x',
      tools: [tool],
      state,
      messageTo: 'message',
      answerFrom: 'answer',
      nodes: (kinds) => ({
        choose: kinds.decide({ tools: ['find'], save: 'answer' }),
        look: kinds.tool({ tool }),
      }),
    }).wire({
      start: 'choose',
      edges: { choose: { find: 'look', text: 'end' }, look: { done: 'choose', failed: 'end' } },
    });
    const model = [finds(1), finds(2), replyText('Found.')];
    const run = await runInMemory(graph, { message: 'Find', model });
    expect(run.outcome).toMatchObject({ status: 'completed', answer: 'Found.', toolCalls: 2 });
    expect(executionsOf(run, run.id)).toEqual({ batches: 0, activities: 2 });
    expect(run.effects.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }]);
    await expectReplays(run);
  });

  test('that its planner makes', async () => {
    const tools = [find(true)];
    const planner = planAndExecute({ name: 'p', instructions: 'x', tools, planning: 'catalog' });
    const reads = [1, 2].map((n) => replyCall('invoke_tool', { tool: 'find', arguments: { n } }));
    const model = [...reads, replyText('Found both.')];
    const run = await runInMemory(planner, { message: 'Find', model });
    expect(run.outcome).toMatchObject({ answer: 'Found both.', toolCalls: 2 });
    expect(executionsOf(run, run.id)).toEqual({ batches: 0, activities: 2 });
    expect(run.effects.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }]);
    await expectReplays(run);
  });

  test('that its plan has', async () => {
    const planner = planAndExecute({ name: 'p', instructions: 'x', tools: [find(true)] });
    const plan = { actions: [{ id: 'a1', tool: 'find', arguments: { n: 1 } }] };
    const model = [replyText(JSON.stringify(plan)), replyText('Report.')];
    const run = await runInMemory(planner, { message: 'Find', model });
    expect(run.outcome).toMatchObject({ answer: 'Report.', toolCalls: 1 });
    expect(executionsOf(run, run.id)).toEqual({ batches: 0, activities: 1 });
    expect(run.effects.map(({ input }) => input)).toEqual([{ n: 1 }]);
    await expectReplays(run);
  });

  test('but an agent that it calls does, in a run of its own', async () => {
    const finder = defineAgent({
      name: 'finder',
      description: 'Finds.',
      instructions: 'x',
      tools: [find(true)],
    });
    const graph = defineGraph({
      name: 'leader',
      state,
      messageTo: 'message',
      answerFrom: 'answer',
      nodes: ({ agent }) => ({
        ask: agent({ agent: finder, message: (s) => s.message, save: 'answer' }),
      }),
    }).wire({ start: 'ask', edges: { ask: { done: 'end', stopped: 'end', failed: 'end' } } });
    const model = [finds(1, 2), replyText('Found.')];
    const run = await runInMemory(graph, { message: 'Find', model });
    expect(run.outcome).toMatchObject({ status: 'completed', answer: 'Found.' });
    expect(executionsOf(run, run.id)).toEqual({ batches: 0, activities: 0 });
    const called = run.effects[0]?.run ?? '';
    expect(called).not.toBe(run.id);
    expect(executionsOf(run, called)).toEqual({ batches: 1, activities: 0 });
    await expectReplays(run);
  });
});
