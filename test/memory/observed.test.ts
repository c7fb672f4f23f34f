import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import {
  approve,
  cancelRun,
  kill,
  pauseRun,
  replyCall,
  replyText,
  resumeRun,
  runInMemory,
  send,
} from '../../src/testing.js';
import { fixtureFiles, listed, stdioFixture } from '../support/mcp-agent.js';
import { look, pay, useSourceBundle } from '../support/memory.js';

const desk = defineAgent({ name: 'desk', instructions: 'Help.', tools: [look, pay] });
const looks = [replyCall('look', { n: 1 }), replyText('Done.')];

beforeAll(useSourceBundle);

describe('the effects of a run in memory', () => {
  test('have the calls of functions of a graph, with their state and items', async () => {
    const graph = defineGraph({
      name: 'counter',
      state: z.object({
        text: z.string(),
        numbers: z.array(z.number()).default([]),
        all: z.array(z.json()).optional(),
      }),
      messageTo: 'text',
      nodes: ({ run, each }) => ({
        list: run({ run: async () => ({ numbers: [1, 2] }) }),
        double: each({ over: (s) => s.numbers, run: async (_, n: number) => n * 2, save: 'all' }),
      }),
    }).wire({ start: 'list', edges: { list: 'double', double: { done: 'end', failed: 'end' } } });
    const { effects } = await runInMemory(graph, { message: 'Go' });
    expect(effects.map(({ tool, attempt }) => [tool, attempt])).toEqual([
      ['list', 1],
      ['double', 1],
      ['double', 1],
    ]);
    expect(effects[0]).toMatchObject({ input: { state: { text: 'Go' } } });
    expect(effects[2]).toMatchObject({ input: { item: 2 }, result: { value: 4 } });
  });

  test('have the calls of MCP servers, at which a worker can die, too', async () => {
    const files = await fixtureFiles([listed('post')]);
    const mcp = [stdioFixture(files, { effects: { post: 'keyed' } })];
    const remote = defineAgent({ name: 'remote', instructions: 'Post.', mcp });
    const { effects } = await runInMemory(remote, {
      message: 'Go',
      model: [replyCall('desk__post', {}), replyText('Posted.')],
      faults: [{ at: 'after-effect', call: 1, kill: true }],
    });
    expect(effects).toMatchObject([
      { run: 'memory', turn: 1, step: 1, tool: 'desk__post', input: {}, attempt: 1 },
      { tool: 'desk__post', attempt: 2, result: expect.any(String) },
    ]);
    expect(effects[0]?.idempotencyKey).toBe(effects[1]?.idempotencyKey);
  });
});

describe('a script in memory', () => {
  test.each([
    ['on.call.pay: never used', { on: { call: { pay: kill() } } }],
    ['on.call.look: 1 of 2 entries', { on: { call: { look: [resumeRun(), resumeRun()] } } }],
    ['on.step[3]', { on: { step: { 3: pauseRun() } } }],
    ['at["2 days"]', { at: { '2 days': cancelRun() } }],
    [
      'faults[0]: {"at":"before-reply","step":9,"kill":true}',
      { faults: [{ at: 'before-reply', step: 9, kill: true }] as const },
    ],
  ])('that the run does not reach is an error: %s', async (missed, script) => {
    const run = runInMemory(desk, { message: 'Go', model: looks, ...script });
    await expect(run).rejects.toThrow(
      `has not reached a place of its script: ${missed}; it ended as`,
    );
  });

  test('says what the run has left over', async () => {
    const run = await runInMemory(desk, {
      message: 'Go',
      model: [...looks, replyText('More.')],
      on: {
        request: { pay: approve(), '*': approve(), question: [approve()] },
        waiting: [send('x')],
      },
    });
    expect(run.unused).toEqual([
      'model: 1 of 3 replies',
      'on.request.pay: never used',
      'on.request.question: never used',
      'on.waiting: never used',
    ]);
    const all = await runInMemory(desk, { message: 'Go', model: looks });
    expect([all.unused, all.missing]).toEqual([[], []]);
    const short = await runInMemory(desk, { message: 'Go', model: looks.slice(0, 1) });
    expect(short.outcome).toMatchObject({ status: 'failed', reason: 'error' });
    expect([short.unused, short.missing]).toEqual([
      [],
      ['model: the model was asked 2 times; the script has 1 reply'],
    ]);
  });

  test('has no option that does not exist', async () => {
    const options = { message: 'Go', model: looks, fault: [] };
    await expect(runInMemory(desk, options)).rejects.toThrow(
      /^"fault" is not an option; did you mean faults\?$/,
    );
  });
});
