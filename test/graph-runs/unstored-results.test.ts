import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { planAndExecute } from '../../src/graphs/plan-and-execute.js';
import { BlobError, type BlobStore } from '../../src/storage/blob-store.js';
import { runInMemory } from '../../src/testing.js';
import { replyText } from '../../src/testing/replies.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { defineTool } from '../../src/tools/define-tool.js';

/** A store that refuses the results of tools, and no other text. */
const blobs = {
  async put(text: string) {
    if (text.includes('row')) throw new BlobError('the disk is full', { kind: 'unwritable' });
    return await Promise.resolve({ sha256: '0'.repeat(64), bytes: text.length });
  },
  async get() {
    return await Promise.reject(new BlobError('it is missing', { kind: 'missing' }));
  },
} as unknown as BlobStore;

const rows = (count: number): string => 'row '.repeat(count);
const loads = {
  'a long text': () => rows(20_000),
  'an artifact': () => artifact(rows(2), { name: 'rows' }),
  'a long artifact': () => artifact(rows(20_000), { name: 'rows' }),
  'no artifact': () => artifact({ row: 1, load: () => 1 }, { name: 'rows' }),
} as const;
const LOST = {
  'a long text': /the disk is full/,
  'an artifact': /the disk is full/,
  'a long artifact': /the disk is full/,
  'no artifact': /the value holds a function/,
} as const;

function loading(execute: () => unknown) {
  return defineTool({
    name: 'load',
    description: 'Loads rows.',
    effect: 'once',
    input: z.object({}),
    execute,
  });
}

describe.each(Object.keys(loads) as (keyof typeof loads)[])('%s that is not stored', (kind) => {
  const load = loading(loads[kind]);

  test('fails the node that would save what is left of it', async () => {
    const graph = defineGraph({
      name: 'one',
      state: z.object({ data: z.unknown(), kind: z.string().optional() }),
      nodes: ({ tool, run }) => ({
        load: tool({ tool: load, arguments: () => ({}), save: 'data' }),
        use: run({ run: async ({ data }) => ({ kind: typeof data }) }),
      }),
    }).wire({ start: 'load', edges: { load: 'use', use: 'end' } });
    const { outcome } = await runInMemory(graph, { input: {}, blobs });
    expect(outcome.status).toBe('failed');
    expect(outcome.error).toMatch(/the tool was executed, but its result is incomplete \(/);
    expect(outcome.error).toMatch(LOST[kind]);
  });

  test('is not passed on to an action of a plan', async () => {
    const stored: string[] = [];
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
    const agent = planAndExecute({
      name: 'keeper',
      instructions: 'Keep.',
      tools: [load, store],
      planning: 'schema',
    });
    const plan = {
      actions: [
        { id: 'a1', tool: 'load', arguments: {} },
        { id: 'a2', tool: 'store', arguments: { text: { $ref: 'a1' } } },
      ],
    };
    const model = [replyText(JSON.stringify(plan)), replyText('Done.')];
    const { modelRequests } = await runInMemory(agent, { message: 'store it', model, blobs });
    expect(stored).toEqual([]);
    const report = JSON.stringify(modelRequests.at(-1)?.messages.at(-1));
    expect(report).toContain('the result of a1 is incomplete (');
  });
});
