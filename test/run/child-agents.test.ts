import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { childOf } from '../support/child-runs.js';
import { gate, type Gate } from '../support/gate.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
});
afterAll(async () => await rig.close());

const lookUp = defineTool({
  name: 'look_up',
  description: 'looks a fact up',
  input: z.object({ what: z.string() }),
  effect: 'read',
  execute: async ({ what }, { context }) => `${what} is ${JSON.stringify(context)}`,
});

/** Calls the agents that the message names, then answers with their answers. */
function boss({ messages }: ModelRequest): ModelReply {
  const [first] = messages;
  const results = messages.filter(({ role }) => role === 'tool');
  if (results.length > 0) return replyText(results.map(({ text }) => text).join(' | '));
  const wanted = (first?.text ?? '').split(',');
  return replyCalls(wanted.map((what) => ({ name: 'expert', arguments: { message: what } })));
}

let hold: Gate | null = null;
async function expert({ messages }: ModelRequest): Promise<ModelReply> {
  const [first] = messages;
  const result = messages.find(({ role }) => role === 'tool');
  if (first?.text === 'wait') await hold?.wait();
  if (first?.text === 'fail') return { ...replyText('no'), finish: 'refused' };
  if (result === undefined) {
    return replyCalls([{ name: 'look_up', arguments: { what: first?.text ?? '' } }]);
  }
  return replyText(`found: ${result.text}`);
}

const experts = defineAgent({
  name: 'expert',
  description: 'knows facts',
  instructions: 'look it up',
  model: 'expert',
  tools: [lookUp],
});
const models = {
  boss: { call: async (request: ModelRequest) => boss(request) },
  expert: { call: expert },
};
const chief = defineAgent({
  name: 'chief',
  instructions: 'ask your experts',
  model: 'boss',
  agents: [experts],
});

describe('an agent that calls another', () => {
  test('receives its answer as the result of a call, and includes its cost', async () => {
    await rig.worker([chief], { models });
    const { outcome, handle } = await rig.run({
      agent: 'chief',
      message: 'iron,gold',
      context: { metal: true },
    });
    expect(outcome).toMatchObject({
      status: 'completed',
      answer: 'found: iron is {"metal":true} | found: gold is {"metal":true}',
      steps: 2,
      toolCalls: 2,
      // Two of its own steps, two of each expert.
      usage: { inputTokens: 60, outputTokens: 30 },
    });
    const children = ['call_1_1_0', 'call_1_1_1'];
    for (const call of children) {
      const child = await childOf(rig.client, handle, call);
      expect(await child.result()).toMatchObject({ status: 'completed', steps: 2 });
    }
    const [segment] = await segmentsOf(rig.client, handle.workflowId);
    expect(segment?.view.turns[0]?.outcome).toMatchObject({ answer: outcome.answer });
  });

  test('receives its failure as an error that it can act on', async () => {
    const { outcome, projection } = await rig.run({ agent: 'chief', message: 'fail' });
    expect(outcome.answer).toContain('agent_failed');
    expect(outcome.answer).toContain('refused');
    expect(projection.messages.at(-1)?.text).toBe(outcome.answer);
  });

  test('gives it the rest of its own limits', async () => {
    const { outcome, handle } = await rig.run({
      agent: 'chief',
      message: 'iron,gold',
      limits: { tokens: 4_000 },
    });
    expect(outcome.status).toBe('completed');
    const child = await childOf(rig.client, handle);
    const [started] = (await child.fetchHistory()).events ?? [];
    const [payload] = started?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
    const input = JSON.parse(Buffer.from(payload?.data ?? []).toString()) as {
      budget: { tokens: number };
      depth: number;
    };
    expect(input.depth).toBe(1);
    expect(input.budget.tokens).toBeGreaterThan(500);
    expect(input.budget.tokens).toBeLessThan(1_500);
  });

  test('is stopped at the depth that its limits allow', async () => {
    const { outcome } = await rig.run({
      agent: 'chief',
      message: 'iron',
      limits: { depth: 1 },
      depth: 1,
    });
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'depth' });
  });

  test('cancels it when it is canceled itself', async () => {
    const door = gate();
    hold = door;
    const handle = await rig.start({ agent: 'chief', message: 'wait' }, `boss-${randomUUID()}`);
    const child = await childOf(rig.client, handle);
    await waitUntil(async () => (await child.describe()).status.name === 'RUNNING');
    await handle.cancel();
    const { outcome, projection } = await rig.end(handle);
    door.release();
    expect(outcome).toMatchObject({ status: 'cancelled' });
    expect(projection.messages.at(-1)?.text).toContain('cancelled');
    expect((await child.describe()).status.name).toBe('CANCELLED');
  });

  test('continues when only the called agent is canceled or terminated', async () => {
    for (const way of ['cancel', 'terminate'] as const) {
      const door = gate();
      hold = door;
      const handle = await rig.start({ agent: 'chief', message: 'wait' }, `boss-${randomUUID()}`);
      const child = await childOf(rig.client, handle);
      await waitUntil(async () => (await child.describe()).status.name === 'RUNNING');
      await child[way]();
      const { outcome } = await rig.end(handle);
      door.release();
      expect(outcome.status).toBe('completed');
      expect(outcome.answer).toContain('agent_failed');
    }
  });
});

async function waitUntil(happened: () => Promise<boolean>): Promise<void> {
  while (!(await happened().catch(() => false)));
}
