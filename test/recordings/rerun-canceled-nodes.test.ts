import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineGraph } from '../../src/graphs/define-graph.js';
import type { MemoryOptions } from '../../src/memory/run-in-memory.js';
import { rerun } from '../../src/recordings/rerun.js';
import { cancelRun, cancelTurn, closeRun } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { playAndRecord, useSourceBundle } from '../support/memory.js';

beforeAll(useSourceBundle);

const untilAborted = async (signal: AbortSignal): Promise<never> =>
  await new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });

const hang = defineTool({
  name: 'hang',
  description: 'Hangs.',
  input: z.object({}),
  effect: 'keyed',
  execute: async (_, { signal }) => await untilAborted(signal),
});
const state = z.object({ text: z.string() });
const wire = { start: 'wait', edges: { wait: { done: 'end', failed: 'end' } } } as const;

/** `hangs` is called when the function begins. */
const functionNode = (hangs: () => boolean) =>
  defineGraph({
    name: 'mail',
    model: 'm',
    state,
    messageTo: 'text',
    nodes: ({ run }) => ({
      wait: run({
        run: async (_, { signal }) => (hangs() ? await untilAborted(signal) : {}),
      }),
    }),
  }).wire(wire);
const toolNode = defineGraph({
  name: 'mail',
  model: 'm',
  state,
  messageTo: 'text',
  nodes: ({ tool }) => ({ wait: tool({ tool: hang, arguments: () => ({}) }) }),
}).wire(wire);

const ends: Readonly<Record<string, (call: string) => MemoryOptions>> = {
  'with its run': (call) => ({ on: { call: { [call]: cancelRun() } } }),
  'with its turn': (call) => ({
    open: true,
    on: { call: { [call]: cancelTurn() }, waiting: [closeRun()] },
  }),
};

test.each(Object.entries(ends))('the tool of a node is canceled again %s', async (_, end) => {
  const recording = await playAndRecord(toolNode, { message: 'Go', model: [], ...end('hang') });
  const { divergence, outcome } = await rerun(recording, { agent: toolNode });
  expect(divergence?.text).toBeUndefined();
  expect(outcome?.status).toBe(recording.runs[0]?.outcome?.status);
});

test.each(Object.entries(ends))('the function of a node is canceled again %s', async (_, end) => {
  const agent = functionNode(() => true);
  const recording = await playAndRecord(agent, { message: 'Go', model: [], ...end('wait') });
  // It would end at once, and is not called.
  const { divergence, outcome } = await rerun(recording, { agent: functionNode(() => false) });
  expect(divergence?.text).toBeUndefined();
  expect(outcome?.status).toBe(recording.runs[0]?.outcome?.status);
});
