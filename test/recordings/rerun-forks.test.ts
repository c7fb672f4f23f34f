import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineGraph } from '../../src/graphs/define-graph.js';
import { type PerdureClient, createClient } from '../../src/index.js';
import { recordRun, replyCall, replyText, rerun, scriptedModel } from '../../src/testing.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

const executed: string[] = [];
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: ({ n }) => {
    executed.push(`look ${n}`);
    return `saw ${n}`;
  },
});
const desk = defineAgent({ name: 'desk', model: 'desk', instructions: 'Help.', tools: [look] });
const pair = defineGraph({
  name: 'pair',
  model: 'desk',
  state: z.object({ topic: z.string().default(''), draft: z.string().default('') }),
  messageTo: 'topic',
  answerFrom: 'draft',
  nodes: ({ run }) => ({
    write: run({ run: async ({ topic }) => ({ draft: `on ${topic}` }) }),
    sign: run({ run: async ({ draft }) => ({ draft: `${draft}, signed` }) }),
  }),
}).wire({ start: 'write', edges: { write: 'sign', sign: 'end' } });

let rig: Rig;
let client: PerdureClient;

beforeAll(async () => {
  rig = await createMemoryRig();
  client = await createClient({ client: rig.client, taskQueue: rig.taskQueue, home: rig.home });
  const replies = [replyCall('look', { n: 1 }), replyText('One.'), replyText('Two.')];
  const again = [replyCall('look', { n: 2 }), replyText('Another.')];
  await rig.worker([desk, pair], { models: { desk: scriptedModel([...replies, ...again]) } });
});
afterAll(async () => {
  await client?.disconnect();
  await rig?.close();
});

describe('a rerun', () => {
  test('has the attachments and artifacts of every message', async () => {
    const image = await client.attach(Buffer.from('89504e470d0a1a0a', 'hex'), {
      mediaType: 'image/png',
    });
    const run = await client.start(desk, {
      id: 'desk-1',
      open: true,
      message: 'Look at these',
      artifacts: { orders: [17, 18] },
    });
    await client.result(run);
    await client.send(run, {
      message: 'And at this',
      attachments: [image],
      artifacts: { late: [19] },
    });
    await client.result(run, { turn: 2 });
    await client.close(run);
    await rig.end(rig.client.workflow.getHandle('desk-1'));
    const recording = await recordRun(client, run);
    executed.length = 0;
    const { divergence, transcript } = await rerun(recording, { agent: desk });
    expect(divergence?.text).toBeUndefined();
    expect(executed).toEqual([]);
    const recorded = await client.transcript(run, { side: true });
    const partsOf = (messages: typeof transcript.messages): unknown =>
      messages.map((one) => (one.role === 'user' ? [one.text, one.attachments] : one.role));
    expect(partsOf(transcript.messages)).toEqual(partsOf(recorded.messages));
  });

  test('of a fork begins with the messages of the other run, which is not read', async () => {
    const fork = await client.fork('desk-1', { id: 'desk-2', at: 4, message: 'Another one' });
    await client.result(fork);
    const recording = await recordRun(client, fork);
    executed.length = 0;
    const { divergence, outcome } = await rerun(recording, { agent: desk });
    expect(divergence?.text).toBeUndefined();
    expect(outcome).toMatchObject({ answer: 'Another.' });
    expect(executed).toEqual([]);
  });

  test('of a fork at a node executes no earlier node', async () => {
    const first = await client.start(pair, { id: 'pair-1', message: 'rain' });
    await client.result(first);
    const fork = await client.fork(first, { id: 'pair-2', at: { node: 'sign' } });
    await client.result(fork);
    const { divergence, outcome, effects } = await rerun(await recordRun(client, fork), {
      agent: pair,
    });
    expect(divergence?.text).toBeUndefined();
    expect(outcome).toMatchObject({ answer: 'on rain, signed' });
    expect(effects.map(({ tool }) => tool)).toEqual(['sign']);
  });

  test('of a fork without the copied messages is refused', async () => {
    const { runs, ...rest } = await recordRun(client, 'desk-2');
    const without = runs.map((run) => ({
      ...run,
      facts: run.facts.filter(
        (fact) => fact.type !== 'activity' || fact.activity !== 'forkMessages',
      ),
    }));
    await expect(rerun({ ...rest, runs: without }, { agent: desk })).rejects.toThrow(
      'recording: expected the messages of "desk-1", from which the run was forked, got none; record a run that has begun',
    );
  });
});
