import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { createGate } from '../../src/testing/play.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { ToolError } from '../../src/tools/errors.js';
import { createDesk, type Desk } from '../support/requests.js';
import { atTerminal, hasTerminal, type Terminal, textOf } from '../support/terminal.js';

let desk: Desk;
beforeAll(async () => {
  desk = await createDesk();
});
afterEach(async () => await desk.rig.stopWorkers());
afterAll(async () => await desk.close());

/** Follows a run in a pseudo-terminal. */
async function attached(run: string): Promise<Terminal> {
  const terminal = await atTerminal(desk.rig, 'attach', run, '--task-queue', desk.rig.taskQueue);
  onTestFinished(() => terminal.close());
  return terminal;
}

/** Returns the lines of a terminal that begin like this, without their times. */
function linesOf(terminal: Terminal, begin: RegExp): readonly string[] {
  return textOf(terminal)
    .split(/\r?\n|\r/)
    .filter((line) => begin.test(line))
    .map((line) => line.replace(/ · [\d.]+ (?:s|ms)$/, ''));
}

test.skipIf(!hasTerminal)(
  'a graph at a terminal has a line for each node, with its items, its attempts, and its failure',
  async () => {
    let tries = 0;
    const gate = createGate();
    const sorter = defineGraph({
      name: 'sorter',
      state: z.object({
        text: z.string(),
        list: z.array(z.number()).default([1, 2, 3]),
        results: z.array(z.json()).optional(),
        verdict: z.object({ ok: z.boolean() }).optional(),
        error: z.json().optional(),
      }),
      messageTo: 'text',
      errorTo: 'error',
      model: 'script',
      instructions: 'Check mails.',
      nodes: ({ run, each, decide }) => ({
        sort: run({
          attempts: 2,
          run: async () => {
            tries += 1;
            if (tries === 1) throw new Error('busy');
            return {};
          },
        }),
        all: each({
          over: (s) => s.list,
          atOnce: 1,
          run: async (_, item: number, { signal }) => {
            if (item === 2) throw new ToolError('two is even');
            if (item === 3) await gate.wait(signal);
            return item;
          },
          save: 'results',
        }),
        check: decide({ output: z.object({ ok: z.boolean() }), save: 'verdict' }),
        pay: run({ run: async () => Promise.reject(new ToolError('no money')) }),
      }),
    }).wire({
      start: 'sort',
      edges: {
        sort: 'all',
        all: { done: 'check' },
        check: { done: 'pay' },
        pay: { done: 'end', failed: 'end' },
      },
    });
    await desk.work([sorter]);
    desk.script(['{"ok":true}']);
    const handle = await desk.rig.start({ agent: 'sorter', message: 'go' });
    const terminal = await attached(handle.workflowId);
    await terminal.isShown('node all · 2 of 3 items, 1 failed');
    gate.barrier.release();
    await desk.end(handle);
    expect(await terminal.exit()).toBe(0);
    const [first = '', model] = linesOf(terminal, /^(?:run|model) /);
    expect(first).toMatch(new RegExp(`^run ${handle.workflowId}(?: · http|$)`));
    expect(model).toBe('model script');
    expect(linesOf(terminal, /^node /)).toEqual([
      'node sort · done · 2 attempts in all',
      'node all · done · 3 of 3 items, 1 failed · item 2: two is even',
      'node check · done · 1 model call',
      'node pay · failed · no money',
    ]);
  },
);

test.skipIf(!hasTerminal)('a plan at a terminal has a line for each of its actions', async () => {
  const gate = createGate();
  const add = defineTool({
    name: 'add',
    description: 'Adds an event.',
    input: z.object({ title: z.string() }),
    effect: 'keyed',
    execute: async ({ title }, { signal }) => {
      await gate.wait(signal);
      if (title === 'full') throw new ToolError('the day is full');
      return title;
    },
  });
  await desk.work([
    planAndExecute({ name: 'planner', instructions: 'Plan.', model: 'script', tools: [add] }),
  ]);
  const actions: readonly object[] = [
    ...['one', 'full', 'two'].map((title, at) => ({
      id: `a${at + 1}`,
      tool: 'add',
      arguments: { title },
    })),
    { id: 'a4', tool: 'add', arguments: { title: { $ref: 'a2' } } },
  ];
  desk.script([JSON.stringify({ actions }), 'All done.']);
  const handle = await desk.rig.start({ agent: 'planner', message: 'plan my day' });
  const terminal = await attached(handle.workflowId);
  await terminal.isShown('0 of 4 actions');
  gate.barrier.release();
  await desk.end(handle);
  expect(await terminal.exit()).toBe(0);
  const lines = linesOf(terminal, /^(?:action|node) /);
  expect(lines.toSorted()).toEqual([
    'action a1 · add · done',
    'action a2 · add · failed · tool_error: the day is full',
    'action a3 · add · done',
    'action a4 · add · skipped · it needs a2, which has failed',
    'node answer · done · 1 model call',
    'node execute · exit some_failed',
    'node needs_approval · exit else',
    'node plan · exit planned · 1 model call',
  ]);
  const places = ['node plan', 'action a1', 'action a3', 'node execute'].map((begin) =>
    lines.findIndex((line) => line.startsWith(begin)),
  );
  expect(places).toEqual([...places].toSorted((one, other) => one - other));
});
