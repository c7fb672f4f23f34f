import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { type Books, DAY_MS, openBooks } from '../../src/core/rules/budget.js';
import type { Pace } from '../../src/core/rules/rate.js';
import type { Model } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { budgetWorkflowId, rateWorkflowId } from '../../src/updates/shared-limits.js';
import { budgetQuery, settleSignal } from '../../src/workflows/messages/definitions.js';
import { clientOf } from '../support/clerk.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { type Rig, createRig } from '../support/rig.js';

const MINUTE_MS = 60_000;
const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });

let rig: Rig;
let memory: Rig;
beforeAll(async () => {
  rig = await createRig();
  memory = await createMemoryRig({ skips: 2 * DAY_MS });
  await memory.worker([agent]);
});
afterAll(async () => {
  await memory.close();
  await rig.close();
});

/** Starts a workflow that hands out an allowance, as a segment before would have left it. */
async function begin(type: 'rate' | 'budget', carried: Pace | Books) {
  const workflowId = `${type}:${randomUUID()}`;
  const { taskQueue } = memory;
  return await memory.client.workflow.start(type, { taskQueue, workflowId, args: [carried] });
}

test('the workflow of a rate goes on as new while its allowance is spoken for, and then ends', async () => {
  const until = Date.now() + 6 * MINUTE_MS;
  const handle = await begin('rate', { requestsUntil: until, tokensUntil: 0 });
  await handle.result();
  const last = await memory.client.workflow.getHandle(handle.workflowId).describe();
  expect(last).toMatchObject({ status: { name: 'COMPLETED' } });
  expect(last.runId).not.toBe(handle.firstExecutionRunId);
});

test('the workflow of a budget goes on as new after 1,000 messages, and forgets nothing', async () => {
  const handle = await begin('budget', openBooks(Date.now()));
  for (let total = 1; total <= 1_000; total += 1) {
    await handle.signal(settleSignal, { holder: 'a', total, settled: 0, reserved: 0 });
  }
  const newest = memory.client.workflow.getHandle(handle.workflowId);
  const reading = await newest.query(budgetQuery);
  expect((await newest.describe()).runId).not.toBe(handle.firstExecutionRunId);
  expect(reading).toMatchObject({ spent: 1_000 });
  await newest.terminate();
});

test('the workflow of a budget ends with its day, when all leases have ended', async () => {
  const yesterday = openBooks(Date.now() - DAY_MS);
  const account = { total: 3, ceiling: 9 };
  const handle = await begin('budget', { ...yesterday, spent: 3, accounts: { a: account } });
  await handle.result();
  const last = await memory.client.workflow.getHandle(handle.workflowId).describe();
  expect(last).toMatchObject({ status: { name: 'COMPLETED' }, runId: handle.firstExecutionRunId });
});

test('with worker versioning, both move to the build that is now the current one', async () => {
  const [name, model, tenant] = [`d-${randomUUID()}`, `m-${randomUUID()}`, `t-${randomUUID()}`];
  const called: string[] = [];
  const modelOf = (build: string): Model => ({
    async call() {
      called.push(build);
      return { ...replyText('done'), usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 } };
    },
  });
  const deploy = async (buildId: string) =>
    await rig.worker([defineAgent({ name: 'a', instructions: 'x', model })], {
      models: { [model]: { ...modelOf(buildId), rate: { requests: 6_000 } } },
      budgets: [{ tenant, per: 'day', tokens: 1e6 }],
      deployment: { name, buildId },
    });
  const ids = [
    rateWorkflowId(model),
    budgetWorkflowId({ of: 'tenant', name: tenant, unit: 'tokens' }),
  ];
  const describe = async () =>
    await Promise.all(ids.map(async (id) => await rig.client.workflow.getHandle(id).describe()));
  const client = await clientOf(rig);
  const run = async () => {
    const { id } = await client.start('a', 'go', { tenant });
    expect(await client.result(id)).toMatchObject({ status: 'completed' });
  };
  const before = await deploy('one');
  await run();
  const first = await describe();
  await deploy('two');
  await before.shutdown();
  await run();
  expect(called).toEqual(['one', 'two']);
  const second = await describe();
  // Without a worker, the server ends them: neither blocks the calls of other workers for good.
  expect(second.map(({ raw }) => Number(raw.executionConfig?.workflowRunTimeout?.seconds))).toEqual(
    [600, 87_000],
  );
  expect(second.map(({ runId }) => runId)).toEqual(first.map(({ runId }) => runId));
  expect(second.map(({ raw }) => raw.workflowExecutionInfo?.versioningInfo?.behavior)).toEqual([
    2, 2,
  ]);
  await client.disconnect();
});
