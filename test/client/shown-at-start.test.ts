import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { History } from '../../src/history/history-event.js';
import { openAiModel } from '../../src/models/openai/model.js';
import { replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { clientOf } from '../support/clerk.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
let client: PerdureClient;
const idle = `idle-${randomUUID()}`;

beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  client = await clientOf(rig);
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
  await stub.close();
});

/** How often the run has written its search attributes. */
function writesOf({ events }: History): number {
  const written = (events ?? []).filter((one) => one.upsertWorkflowSearchAttributesEventAttributes);
  return written.length;
}

/** Waits until the server lists these ids, which takes it a moment. */
async function listed(filter: Parameters<PerdureClient['list']>[0], id: string): Promise<unknown> {
  const find = async () => (await client.list(filter)).rows.find((row) => row.id === id);
  await expect.poll(find, { timeout: 15_000 }).toBeDefined();
  return await find();
}

describe('lists show a run from its start', () => {
  test('by agent, status, and tag, although no worker has begun it', async () => {
    const { id } = await client.start(idle, { message: 'hi', tags: ['early'] });
    expect(await listed({ agent: idle, status: 'working' }, id)).toMatchObject({
      agent: idle,
      status: 'working',
      tags: ['early'],
    });
    const { searchAttributes } = await rig.client.workflow.getHandle(id).describe();
    expect(searchAttributes).toEqual({ AgentName: [idle], AgentStatus: ['working'] });
    await rig.client.workflow.getHandle(id).terminate();
  });

  test('as blocked while no worker has its agent', async () => {
    await rig.worker([]);
    const { id } = await client.start(idle, { message: 'hi' });
    expect(await listed({ agent: idle, status: 'blocked' }, id)).toMatchObject({
      status: 'blocked',
      reason: 'agent_missing',
    });
    await client.cancel(id);
    await client.result(id);
    expect(await listed({ agent: idle, status: 'cancelled' }, id)).toMatchObject({ agent: idle });
    await rig.stopWorkers();
  });

  test('and the run writes only its end, unless its starter has set nothing', async () => {
    const agent = defineAgent({ name: 'quick', instructions: 'hi', model: 'm' });
    await rig.worker([agent], { models: { m: openAiModel({ baseUrl: stub.baseUrl }) } });
    stub.fallback(() => replyText('done'));
    const { id } = await client.start(agent, { message: 'hi' });
    await client.result(id);
    const ended = await rig.end(rig.client.workflow.getHandle(id));
    expect(writesOf(ended.history)).toBe(1);
    const raw = await rig.run({ agent: 'quick', message: 'hi' });
    expect(writesOf(raw.history)).toBe(2);
    for (const { handle } of [ended, raw]) {
      expect(
        await listed({ agent: 'quick', status: 'completed' }, handle.workflowId),
      ).toMatchObject({
        status: 'completed',
        reason: 'answer',
      });
    }
  });

  test('with the reason of a run that could not begin', async () => {
    const agent = defineAgent({
      name: 'filled',
      instructions: 'Hello {{name}}',
      model: 'm',
    });
    await rig.worker([agent], { models: { m: openAiModel({ baseUrl: stub.baseUrl }) } });
    const { id } = await client.start('filled', { message: 'hi', args: { other: 'x' } });
    await client.result(id);
    expect(await listed({ agent: 'filled', status: 'failed' }, id)).toMatchObject({
      reason: 'input',
    });
  });
});
