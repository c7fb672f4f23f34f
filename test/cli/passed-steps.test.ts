import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { palette } from '../../src/cli/format/format.js';
import { nodeLine, createStepLines } from '../../src/cli/run-view/step-lines.js';
import { cases } from '../../src/graphs/cases.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { createProjector } from '../../src/history/projection.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import type { HistoryEvent } from '../../src/history/history-event.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { answer, approveSome, deny, runInMemory } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { useSourceBundle } from '../support/memory.js';

const paint = palette(false);
let failures = 0;

/** Goes through its nodes twice; an item of the first pass is retried. */
const looping = defineGraph({
  name: 'looping',
  state: z.object({
    words: z.array(z.string()).default([]),
    sizes: z.array(z.json()).optional(),
    passes: z.number().default(0),
  }),
  nodes: ({ run, each, choose }) => ({
    split: run({ run: async () => ({ words: ['a', 'bad', 'c'] }) }),
    measure: each({
      over: (s) => s.words,
      run: async (_, word: string) => {
        if (word === 'bad' && failures++ === 0) throw new Error('slow');
        return word.length;
      },
      save: 'sizes',
      maxVisits: 5,
    }),
    sum: run({ run: async (s) => ({ passes: s.passes + 1 }) }),
    again: choose({ on: (s) => cases({ enough: s.passes.over(1) }) }),
  }),
}).wire({
  start: 'split',
  edges: {
    split: 'measure',
    measure: { done: 'sum', failed: 'sum', capped: 'end' },
    sum: 'again',
    again: { enough: 'end', else: 'measure' },
  },
});

/** Enters a node once more than it may be visited, from one that takes no time. */
const capped = defineGraph({
  name: 'capped',
  state: z.object({
    words: z.array(z.string()).default(['a']),
    sizes: z.array(z.json()).optional(),
  }),
  nodes: ({ each, choose }) => ({
    check: choose({ on: (s) => cases({ never: s.words.is([]) }) }),
    measure: each({
      over: (s) => s.words,
      run: async (_, word: string, { generate }) => await generate({ model: 'm', message: word }),
      save: 'sizes',
      maxVisits: 2,
    }),
  }),
}).wire({
  start: 'check',
  edges: {
    check: { never: 'end', else: 'measure' },
    measure: { done: 'check', failed: 'end', capped: 'end' },
  },
});

const again = () => replyCall('look', { at: String((looks += 1)) });
let looks = 0;

async function eventsOf(graph: Agent): Promise<readonly HistoryEvent[]> {
  const { history } = await runInMemory(graph, {
    input: {},
    models: { m: { call: async ({ tools }) => (tools.length > 0 ? again() : replyText('a')) } },
  });
  return (history[0]?.history.events ?? []).map(decodeEvent);
}

let events: readonly HistoryEvent[];
beforeAll(async () => {
  await useSourceBundle();
  events = await eventsOf(looping);
});

/** Returns the lines of a follower who gets the history in these pages. */
function follow(pages: readonly (readonly HistoryEvent[])[]): readonly string[] {
  const emit = createStepEmitter('r');
  const tell = createStepLines(paint, { run: 'x', resume: null, runnable: (text) => text });
  const lines: string[] = [];
  for (const page of pages) {
    const steps = page.flatMap(emit);
    const view = emit.view();
    lines.push(...tell.steps(steps, view), ...tell.now(view));
  }
  return lines;
}

/** Returns the nodes of the transcript. */
function transcribed(of: readonly HistoryEvent[] = events): readonly string[] {
  return of
    .flatMap(createStepEmitter('r'))
    .flatMap((step) => (step.type === 'node-ended' ? [nodeLine(step, paint)] : []));
}

test('the past of a joined run has its nodes in order, with the times of a live watch and of the transcript', () => {
  const live = follow(events.map((event) => [event]));
  expect(live.map((line) => line.replace(/ · [\d.]+ (s|ms)$/, ''))).toEqual([
    'node split · done',
    'node measure · done · 3 of 3 items · 4 attempts in all',
    'node sum · done',
    'node again · exit else',
    'node measure · done · 3 of 3 items',
    'node sum · done',
    'node again · exit enough',
  ]);
  expect(live).toEqual(transcribed());
  expect(follow([events])).toEqual(live);
  for (let at = 1; at < events.length; at += 1) {
    expect(follow([events.slice(0, at), events.slice(at)])).toEqual(live);
  }
});

test('the turn of a graph without a message begins before its first node', () => {
  const types = events.flatMap(createStepEmitter('r')).map(({ type }) => type);
  expect(types.slice(0, 3)).toEqual(['run-started', 'turn-begun', 'node-begun']);
});

test('nodes end in the order of their exits, and a visit beyond the maximum does nothing', async () => {
  const steps = (await eventsOf(capped)).flatMap(createStepEmitter('r'));
  const lines = steps.flatMap((step) =>
    step.type === 'node-ended' ? [nodeLine(step, paint)] : [],
  );
  expect(lines.map((line) => line.replace(/ · [\d.]+ (s|ms)$/, ''))).toEqual([
    'node check · exit else',
    'node measure · done · 1 of 1 item · 1 model call',
    'node check · exit else',
    'node measure · done · 1 of 1 item · 1 model call',
    'node check · exit else',
    'node measure · exit capped',
  ]);
});

const failing = defineGraph({
  name: 'failing',
  state: z.object({ words: z.array(z.string()).default(['a']) }),
  nodes: ({ run }) => ({
    fine: run({ run: async () => ({}) }),
    broken: run({ run: () => Promise.reject(new ToolError('no such order')) }),
  }),
}).wire({ start: 'fine', edges: { fine: 'broken', broken: 'end' } });

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: ({ at }) => at,
});
const limited = defineGraph({
  name: 'limited',
  state: z.object({ answer: z.string().default('') }),
  model: 'm',
  tools: [look],
  limits: { steps: 2 },
  instructions: 'Look.',
  nodes: ({ decide, run }) => ({
    search: decide({ tools: ['look'], save: 'answer' }),
    use: run({ run: async () => ({}) }),
  }),
}).wire({ start: 'search', edges: { search: { look: 'use', text: 'end' }, use: 'search' } });

test.each([
  [failing, 'node broken · failed'],
  [limited, 'node search · stopped · 1 model call'],
])('a node in which the turn ends has its end, before that of the turn', async (graph, line) => {
  const own = await eventsOf(graph);
  const steps = own.flatMap(createStepEmitter('r'));
  const types = steps.map(({ type }) => type);
  expect(types.lastIndexOf('node-begun')).toBeLessThan(types.lastIndexOf('node-ended'));
  expect(types.slice(-3)).toEqual(['node-ended', 'turn-ended', 'run-ended']);
  const lines = transcribed(own);
  expect(lines.at(-1)).toBe(line);
  for (let at = 1; at <= own.length; at += 1) {
    expect(nodeLines(follow([own.slice(0, at), own.slice(at)]))).toEqual(lines);
  }
});

const nodeLines = (lines: readonly string[]) => lines.filter((line) => line.startsWith('node '));

test('what a run has received, but not processed, has the time at which it arrived', () => {
  const at = events.findLastIndex(({ type }) => type === 'completed');
  const projector = createProjector();
  for (const event of events.slice(0, at + 1)) projector.push(event);
  const { graph } = projector.view().state ?? {};
  const before = events.findLast(
    ({ id, type }) => type === 'task-started' && id < (events[at]?.id ?? 0),
  );
  expect(graph?.at).toBeNull();
  expect(graph?.visited.find(({ node }) => node === 'sum')?.ms).toBeGreaterThanOrEqual(
    Math.floor(events[at]?.at ?? 0) - Math.floor(before?.at ?? 0),
  );
});

test('a plan that a person has decided has who decided, what, and no node that looks like an answer', async () => {
  const add = defineTool({
    name: 'add',
    description: 'adds',
    input: z.object({ title: z.string() }),
    effect: 'keyed',
    approval: 'always',
    execute: async ({ title }) => title,
  });
  const keeper = planAndExecute({ name: 'keeper', instructions: 'x', tools: [add] });
  const actions = ['a1', 'a2'].map((id) => ({ id, tool: 'add', arguments: { title: id } }));
  const planned = () => replyText(JSON.stringify({ actions }));
  const { history } = await runInMemory(keeper, {
    message: 'add two',
    model: [planned(), planned(), replyText('Done.')],
    on: {
      request: {
        plan: [answer('edit ask again', { by: 'ann' }), approveSome(['a1'], { by: 'bob' })],
      },
    },
  });
  const steps = (history[0]?.history.events ?? []).map(decodeEvent).flatMap(createStepEmitter('r'));
  const lines = steps.flatMap((step) =>
    step.type === 'node-ended' ? [nodeLine(step, paint)] : [],
  );
  expect(lines.map((line) => line.replace(/ · [\d.]+ (s|ms|min)$/, ''))).toEqual([
    'node plan · exit planned · 1 model call',
    'node needs_approval · exit yes',
    'node confirm · exit edit · decided by ann',
    'node plan · exit planned · 1 model call',
    'node needs_approval · exit yes',
    'node confirm · exit some: a1 · decided by bob',
    'node execute · done',
    'node answer · done · 1 model call',
  ]);
});

test.each([
  [approveSome(['a1']), 'node confirm · exit some: a1', 'node execute · done'],
  [deny({ note: 'not now' }), 'node confirm · exit no', 'node execute · no action to execute'],
])('a plan of one action says what was left of it: %j', async (decision, ...said) => {
  const add = defineTool({
    name: 'add',
    description: 'adds',
    input: z.object({}),
    effect: 'keyed',
    approval: 'always',
    execute: async () => 'added',
  });
  const { history } = await runInMemory(
    planAndExecute({ name: 'keeper', instructions: 'x', tools: [add] }),
    {
      message: 'add one',
      model: [
        replyText(JSON.stringify({ actions: [{ id: 'a1', tool: 'add', arguments: {} }] })),
        replyText('Done.'),
      ],
      on: { request: { plan: decision } },
    },
  );
  const steps = (history[0]?.history.events ?? []).map(decodeEvent).flatMap(createStepEmitter('r'));
  const lines = steps.flatMap((step) =>
    step.type === 'node-ended' ? [nodeLine(step, paint).split(' · ').slice(0, 2).join(' · ')] : [],
  );
  expect(lines.slice(2, 4)).toEqual(said);
});

test('a text that is cut in the line of a node ends with …', () => {
  const message = 'x'.repeat(200);
  const end = { type: 'node-ended', node: 'n', ms: 0 } as const;
  const error = { node: 'n', type: 'error', message };
  const failed = nodeLine({ ...end, exit: 'failed', patch: { error } }, paint);
  expect(failed).toBe(`node n · failed · ${`error: ${message}`.slice(0, 79)}…`);
  const items = { done: 0, total: 1, errors: [{ item: 1, message }] };
  const each = nodeLine({ ...end, exit: 'some_failed', items }, paint);
  expect(each).toBe(
    `node n · exit some_failed · 1 of 1 item, 1 failed · item 1: ${message.slice(0, 79)}…`,
  );
});

test("the work of a node has the node's name in Temporal's UI, and that of its item", () => {
  const summaries = events.flatMap((event) =>
    event.type === 'scheduled' && event.activity === 'runTool' ? [event.summary] : [],
  );
  expect(summaries).toEqual(
    expect.arrayContaining(['node split', 'node measure, item 2', 'node sum']),
  );
  expect(summaries.join(' ')).not.toContain('node:');
});
