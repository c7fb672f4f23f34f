import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { runInMemory } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';

const load = defineTool({
  name: 'load',
  description: 'Loads rows.',
  effect: 'once',
  input: z.object({ rows: z.number() }),
  execute: ({ rows }) => ({ rows: Array.from({ length: rows }, (_, row) => 100_000 + row) }),
});
const TOO_LARGE =
  /the tool was executed, but its result of 140.0 kB is too large to be saved; return less, or an artifact/;

const one = defineGraph({
  name: 'one',
  state: z.object({ rows: z.number(), data: z.unknown(), kind: z.string().optional() }),
  nodes: ({ tool, run }) => ({
    load: tool({ tool: load, arguments: (s) => ({ rows: s.rows }), save: 'data' }),
    use: run({ run: async ({ data }) => ({ kind: typeof data }) }),
  }),
}).wire({ start: 'load', edges: { load: 'use', use: 'end' } });

test('a result that fits is saved as it is, and a larger one fails its node, as executed', async () => {
  const small = await runInMemory(one, { input: { rows: 1_000 } });
  expect(small.outcome.output).toMatchObject({ kind: 'object' });
  const { outcome } = await runInMemory(one, { input: { rows: 20_000 } });
  expect(outcome.status).toBe('failed');
  expect(outcome.error).toMatch(TOO_LARGE);
});

const many = defineGraph({
  name: 'many',
  state: z.object({ sizes: z.array(z.number()), found: z.unknown() }),
  nodes: ({ each }) => ({
    load: each({
      over: (s) => s.sizes,
      tool: load,
      arguments: (_, rows) => ({ rows }),
      save: 'found',
    }),
  }),
}).wire({ start: 'load', edges: { load: 'end' } });

test('an item whose result is too large has failed', async () => {
  const { outcome } = await runInMemory(many, { input: { sizes: [2, 20_000] } });
  expect(outcome.output).toMatchObject({
    found: [
      { ok: true, value: { rows: [100_000, 100_001] } },
      { ok: false, error: { type: 'too_large', message: expect.stringMatching(TOO_LARGE) } },
    ],
  });
});
