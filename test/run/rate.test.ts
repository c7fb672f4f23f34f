import { randomUUID } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Model } from '../../src/models/model.js';
import type { ModelRate } from '../../src/models/model-entry.js';
import { runInMemory } from '../../src/testing.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { refusedBy } from '../support/allowances.js';
import { sourceBundle } from '../support/bundle.js';
import { clientOf } from '../support/clerk.js';
import { type Rig, createRig } from '../support/rig.js';

const STEPS = 4;

let rig: Rig;
let client: PerdureClient;

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
});
afterEach(async () => {
  await rig.stopWorkers();
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ after: z.number() }),
  effect: 'read',
  execute: () => 'seen',
});

/** A model of this process that calls a tool some times, and the times of its calls. */
function timed(steps = STEPS): { readonly model: Model; readonly times: number[] } {
  const times: number[] = [];
  const call: Model['call'] = async ({ messages }) => {
    times.push(performance.now());
    const { length } = messages;
    return length < 2 * steps - 1 ? replyCall('look', { after: length }) : replyText('done');
  };
  return { model: { call }, times };
}

function agentOf(model: string) {
  return defineAgent({ name: 'walker', instructions: 'walk', model, tools: [look] });
}

/** Starts a worker on its own, so that a process of its own would do the same. */
async function workerWith(name: string, model: Model, rate: ModelRate): Promise<void> {
  await rig.worker([agentOf(name)], { models: { [name]: { ...model, rate } } });
}

test('two workers share one allowance: no call is refused, and few calls ask the server', async () => {
  const rate = { requests: 20, per: '8 seconds' } as const;
  // Some more than the rate, because a busy machine may be late; without a rate, four are refused.
  const allowance = { requests: 24, perMs: 8_000 };
  const { model, times } = timed();
  const name = `m-${randomUUID()}`;
  await workerWith(name, model, rate);
  await workerWith(name, model, rate);
  const runs = await Promise.all(
    Array.from({ length: 7 }, () => client.start(agentOf(name), 'walk')),
  );
  for (const { id } of runs) {
    expect(await client.result(id)).toMatchObject({ status: 'completed' });
  }
  expect(times).toHaveLength(7 * STEPS);
  expect(refusedBy(allowance, times)).toMatchObject({
    'in a window that slides': 0,
    'in fixed windows': 0,
  });
  const workflowId = `rate:${name}`;
  const history = await rig.client.workflow.getHandle(workflowId).fetchHistory();
  const taken = history.events?.filter(
    (event) => event.workflowExecutionUpdateAcceptedEventAttributes,
  );
  expect(taken?.length).toBeGreaterThan(2);
  expect(taken?.length).toBeLessThan(times.length);
  await Worker.runReplayHistory({ workflowBundle: await sourceBundle() }, history, workflowId);
  // No list of runs shows the workflow that hands out the allowance.
  const { rows } = await client.list();
  expect(rows.filter(({ id }) => id.startsWith('rate:'))).toEqual([]);
});

test('a call that finds no room blocks its run, which says when there is some', async () => {
  const name = `m-${randomUUID()}`;
  const { model, times } = timed(2);
  await workerWith(name, model, { requests: 1, per: '1 day' });
  const { id } = await client.start(agentOf(name), 'walk');
  await vi.waitFor(
    async () => {
      expect(await client.status(id)).toMatchObject({ status: 'blocked', reason: 'provider' });
    },
    { timeout: 20_000, interval: 50 },
  );
  const status = await client.status(id);
  expect(JSON.stringify(status)).toContain(
    `the shared rate of model \\"${name}\\" has no room for this call; try in about`,
  );
  expect(times).toHaveLength(1);
  await client.cancel(id);
});

test('a run in memory does not wait', async () => {
  const { model, times } = timed();
  const rate = { requests: 1, per: '1 day' } as const;
  const models = { m: { ...model, rate } };
  const { outcome } = await runInMemory(agentOf('m'), { message: 'walk', models });
  expect(outcome.status).toBe('completed');
  expect(times).toHaveLength(STEPS);
});
