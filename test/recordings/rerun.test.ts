import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { playRun } from '../../src/memory/run-in-memory.js';
import type { Recording } from '../../src/recordings/recording.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import { recordingOf, rerun } from '../../src/recordings/rerun.js';
import { approve, deny, closeRun, send } from '../../src/testing/actions.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { ToolError } from '../../src/tools/errors.js';
import { defineTool } from '../../src/tools/define-tool.js';

const executed: string[] = [];
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ order: z.int() }),
  effect: 'read',
  execute: ({ order }) => {
    executed.push('look');
    if (order === 0) throw new ToolError('no such order');
    return { order, state: 'late' };
  },
});
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: z.object({ order: z.int(), euros: z.number() }),
  effect: 'once',
  approval: 'always',
  execute: () => {
    executed.push('refund');
    return 'paid';
  },
});
const clerk = defineAgent({
  name: 'clerk',
  description: 'Looks up orders.',
  instructions: 'Look.',
  tools: [look],
});
const desk = defineAgent({
  name: 'desk',
  instructions: 'Help.',
  tools: [look, refund],
  agents: [clerk],
});

const replies = [
  replyCall('look', { order: 0 }),
  replyCall('clerk', { message: 'Order 17?' }),
  replyCall('look', { order: 17 }),
  replyText('It is late.'),
  replyCall('refund', { order: 17, euros: 20 }),
  replyText('Paid.'),
  replyText('You are welcome.'),
];

async function record(): Promise<Recording> {
  const run = await playRun(desk, {
    message: 'Refund order 17',
    open: true,
    model: replies,
    on: { request: { refund: approve({ by: 'bob' }) }, waiting: [send('Thanks'), closeRun()] },
  });
  const recording = recordingOf(run, { blobs: {} });
  return parseRecording(JSON.parse(JSON.stringify(recording)));
}

const recording = await record();

describe('a rerun with the recorded model and tools', () => {
  test('is the recorded run, and executes no tool', async () => {
    executed.length = 0;
    const { divergence, outcome, recording: again } = await rerun(recording, { agent: desk });
    expect(divergence?.text).toBeUndefined();
    expect(outcome).toMatchObject({ status: 'completed', answer: 'You are welcome.' });
    expect(executed).toEqual([]);
    expect(again?.runs.map(({ agent }) => agent)).toEqual(['desk', 'clerk']);
  });

  test('has the results of inline calls', async () => {
    const peek = defineTool({
      name: 'peek',
      description: 'Looks at once.',
      effect: 'read',
      inline: true,
      input: z.object({ order: z.int() }),
      execute: ({ order }) => {
        executed.push('peek');
        return { order };
      },
    });
    const reader = defineAgent({ name: 'reader', instructions: 'Look.', tools: [peek] });
    const reads = replyCalls([1, 2].map((order) => ({ name: 'peek', arguments: { order } })));
    const run = await playRun(reader, { message: 'Go', model: [reads, replyText('Seen.')] });
    const inline = recordingOf(run, { blobs: {} });
    executed.length = 0;
    const { divergence, outcome } = await rerun(inline, { agent: reader });
    expect(divergence).toBeNull();
    expect(outcome).toMatchObject({ answer: 'Seen.', toolCalls: 2 });
    expect(executed).toEqual([]);
  });

  test('has a cost, and the price by which the run was recorded', async () => {
    const paid = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      model: 'tiny',
      limits: { costUsd: 1 },
    });
    const price = { input: 1, cachedInput: 1, output: 2 };
    const run = await playRun(paid, {
      message: 'Hello',
      models: { tiny: { ...scriptedModel([replyText('Hi.')]), price } },
    });
    const { divergence, outcome } = await rerun(recordingOf(run, { blobs: {} }), { agent: paid });
    expect(divergence?.text).toBeUndefined();
    expect(outcome?.usage).toEqual(run.outcome?.usage);
    expect(outcome?.usage.costUsd).toBeGreaterThan(0);
  });

  test('says why it failed where the recorded run did not', async () => {
    const unpriced = scriptedModel([replyText('Hi.')]);
    const run = await playRun(desk, { message: 'Hello', model: unpriced });
    const limited = defineAgent({ name: 'desk', instructions: 'Help.', limits: { costUsd: 1 } });
    const { divergence } = await rerun(recordingOf(run, { blobs: {} }), { agent: limited });
    expect(divergence?.kind).toBe('outcome');
    expect(divergence?.text).toMatch(/desk, turn 1: failed: limits\.costUsd: the price of model/);
  });

  test('is not tried with a model of unknown price where the cost is limited', async () => {
    const price = { input: 1, cachedInput: 1, output: 1 };
    const limited = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      model: 'tiny',
      limits: { costUsd: 1 },
    });
    const { history } = await playRun(limited, {
      message: 'Hi.',
      models: { tiny: { ...scriptedModel([replyText('Hello.')]), price } },
    });
    const recorded = recordingOf({ history }, { blobs: {} });
    const model = scriptedModel([replyText('Hi.')]);
    await expect(rerun(recorded, { agent: limited, model })).rejects.toThrow(
      /^model: expected one with a price, since the run has limits\.costUsd/,
    );
    const priced = { ...model, price };
    expect((await rerun(recorded, { agent: limited, model: priced })).divergence).toBeNull();
  });

  test('does not miss the request that a revoked grant has caused', async () => {
    const pays = [17, 18].map((order) => replyCall('refund', { order, euros: 20 }));
    const run = await playRun(desk, {
      message: 'Refund 17 and 18',
      model: [...pays, replyText('Paid.')],
      on: { request: { refund: approve({ by: 'bob' }) } },
    });
    const { runs, ...rest } = recordingOf(run, { blobs: {} });
    // As if the first approval had a grant, which was revoked before the second call.
    const revoked = runs.map(({ facts, ...one }) => {
      const first = facts.findIndex(({ type }) => type === 'decision');
      const changed = facts.flatMap((fact, index) => {
        if (fact.type !== 'decision' || index !== first) return [fact];
        const { at, decision } = fact;
        const revoke = { at, type: 'control', name: 'revoke', input: { grant: 'g1' } } as const;
        return [{ ...fact, decision: { ...decision, grant: { scope: 'tool' } as const } }, revoke];
      });
      return { ...one, facts: changed };
    });
    const { divergence } = await rerun({ ...rest, runs: revoked }, { agent: desk });
    expect(divergence?.text).toBeUndefined();
  });

  test('finds that a rule now denies the call', async () => {
    const strict = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      tools: [look, refund],
      agents: [clerk],
      rules: [{ tool: 'refund', then: 'deny' }],
    });
    const { divergence } = await rerun(recording, { agent: strict });
    expect(divergence).toMatchObject({ agent: 'desk', turn: 1, kind: 'message' });
    expect(divergence?.text).toBe(
      'desk, turn 1, step 3: would deny refund {"euros":20,"order":17}; in the recording, it was allowed',
    );
  });

  test('says that a call which would be executed now was denied', async () => {
    const run = await playRun(desk, {
      message: 'Refund order 17',
      model: [replyCall('refund', { order: 17, euros: 20 }), replyText('No.')],
      on: { request: { refund: deny() } },
    });
    const free = defineTool({
      name: 'refund',
      description: 'Pays money back.',
      input: z.object({ order: z.int(), euros: z.number() }),
      effect: 'once',
      execute: () => 'paid',
    });
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      tools: [look, free],
      agents: [clerk],
    });
    const { divergence } = await rerun(recordingOf(run, { blobs: {} }), { agent });
    expect(divergence?.text).toBe(
      'desk, turn 1, step 1: would execute refund {"order":17,"euros":20}; in the recording, it was denied',
    );
  });

  test.each([
    ['ask', 'would ask about'],
    ['deny', 'would deny'],
  ] as const)('says that a new rule would %s about a recorded call', async (then, says) => {
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({ to: z.string(), euros: z.number() }),
      effect: 'once',
      execute: () => 'paid',
    });
    const payer = { name: 'payer', instructions: 'Pay.', tools: [pay] };
    const where = { op: 'eq', path: 'to', value: 'bob' } as const;
    const before = defineAgent({ ...payer, rules: [{ tool: 'pay', then: 'ask', where }] });
    const model = [
      replyCall('pay', { to: 'ann', euros: 5 }),
      replyCall('pay', { to: 'bob', euros: 5 }),
      replyText('Paid.'),
    ];
    const on = { request: { pay: approve() } };
    const run = await playRun(before, { message: 'Pay both', model, on });
    const agent = defineAgent({ ...payer, rules: [{ tool: 'pay', then }] });
    const { divergence } = await rerun(recordingOf(run, { blobs: {} }), { agent });
    expect(divergence?.text).toBe(
      `payer, turn 1, step 1: ${says} pay {"euros":5,"to":"ann"}; in the recording, it was allowed`,
    );
  });

  test('finds that nobody is asked about the call any more', async () => {
    const free = defineTool({
      name: 'refund',
      description: 'Pays money back.',
      input: z.object({ order: z.int(), euros: z.number() }),
      effect: 'once',
      execute: () => 'paid',
    });
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      tools: [look, free],
      agents: [clerk],
    });
    const { divergence, outcome } = await rerun(recording, { agent });
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(divergence).toMatchObject({ agent: 'desk', turn: 1, step: 3, kind: 'request' });
    expect(divergence?.text).toBe(
      'desk, turn 1, step 3: asked for no decision about refund {"euros":20,"order":17}; recorded a decision',
    );
  });

  test('finds that a schema now refuses the arguments', async () => {
    const small = defineTool({
      name: 'refund',
      description: 'Pays money back.',
      effect: 'once',
      execute: () => 'paid',
      input: z.object({ order: z.int(), euros: z.number().max(10) }),
    });
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      tools: [look, small],
      agents: [clerk],
    });
    const { divergence } = await rerun(recording, { agent });
    expect(divergence).toMatchObject({ agent: 'desk', kind: 'message' });
    expect(divergence?.recorded).toEqual({ role: 'tool', text: 'paid' });
  });
});

describe('a rerun with another model', () => {
  const answer = [
    replyCall('look', { order: 0 }),
    replyCall('clerk', { message: 'Order 17?' }),
    replyCall('look', { order: 17 }),
    replyText('Late.'),
  ];

  test('gets the recorded results, and may use other words', async () => {
    executed.length = 0;
    const model = scriptedModel([
      ...answer,
      replyCall('refund', { euros: 20, order: 17 }),
      replyText('Done.'),
      replyText('Bye.'),
    ]);
    const { divergence, outcome } = await rerun(recording, { agent: desk, model });
    expect(divergence?.text).toBeUndefined();
    expect(outcome?.answer).toBe('Bye.');
    expect(executed).toEqual([]);
  });

  test('ends at a call that the recording does not have, with the nearest one', async () => {
    executed.length = 0;
    const model = scriptedModel([...answer, replyCall('refund', { order: 17, euros: 30 })]);
    const { divergence } = await rerun(recording, { agent: desk, model });
    expect(divergence).toEqual({
      agent: 'desk',
      turn: 1,
      step: 3,
      kind: 'call',
      actual: { tool: 'refund', arguments: { order: 17, euros: 30 } },
      recorded: { tool: 'refund', arguments: { euros: 20, order: 17 } },
      nearest: { tool: 'refund', arguments: { euros: 20, order: 17 } },
      text: 'desk, turn 1, step 3: called refund {"euros":30,"order":17}; recorded refund {"euros":20,"order":17}',
    });
    expect(executed).toEqual([]);
  });

  test('gives no decision about one call to another call with the same number', async () => {
    executed.length = 0;
    const other = scriptedModel([
      replyCall('look', { order: 0 }),
      replyCall('refund', { order: 17, euros: 9_000 }),
      replyText('Paid.'),
    ]);
    const { divergence, requests } = await rerun(recording, { agent: desk, model: other });
    expect(divergence).toMatchObject({ kind: 'call', turn: 1, step: 2 });
    expect(divergence?.text).toContain('9000');
    expect(requests.map(({ decided }) => decided)).toEqual([[]]);
    expect(executed).toEqual([]);
  });

  test('executes a live tool that only reads, and refuses one with a side effect', async () => {
    executed.length = 0;
    await rerun(recording, { agent: desk, tools: { look } });
    expect(executed).toEqual(['look', 'look']);
    const asked = rerun(recording, { agent: desk, tools: { refund } });
    await expect(asked).rejects.toThrow(
      'tools.refund: expected a tool with the effect "read", got "once"',
    );
    await expect(rerun(recording, { agent: clerk })).rejects.toThrow(
      'agent: expected "desk", as recorded, got "clerk"',
    );
  });
});
