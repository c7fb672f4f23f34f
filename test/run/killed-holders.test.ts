import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultPayloadConverter } from '@temporalio/common';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { SharedBudget } from '../../src/core/rules/budget.js';
import { type Block, gapMs } from '../../src/core/rules/rate.js';
import { replyCall, replyText, withDelivery } from '../../src/testing/replies.js';
import { type Stub, startStub } from '../../src/testing/stub-server.js';
import { readBudget, rateWorkflowId } from '../../src/updates/shared-limits.js';
import { type Allowances, allowancesEnv } from '../support/allowances-config.js';
import { refusedBy } from '../support/allowances.js';
import { clientOf } from '../support/clerk.js';
import { killTogether } from '../support/kill-together.js';
import { type Rig, createRig } from '../support/rig.js';

let rig: Rig;
let stub: Stub;
let home: string;
beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  home = await mkdtemp(join(tmpdir(), 'perdure-holders-'));
});
afterAll(async () => {
  await Promise.all([rig.close(), stub.close()]);
  await rm(home, { recursive: true, force: true });
});

function envOf(allowances: Allowances): Readonly<Record<string, string>> {
  return {
    ADDRESS: inject('temporalAddress'),
    QUEUE: `holders-${randomUUID()}`,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_HOME: home,
    ...allowancesEnv(allowances),
  };
}

async function clientFor({ QUEUE: taskQueue = '' }: Readonly<Record<string, string>>) {
  return await clientOf(rig, { taskQueue });
}

/** Lets runs spend, one after the other, until one finds no room. Returns all of them, that one last. */
async function spendAll(client: PerdureClient, tag: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (;;) {
    const { id } = await client.start('spender', { message: `once ${tag}`, tags: [tag] });
    ids.push(id);
    await expect.poll(async () => (await client.status(id)).status).toMatch(/^(?:done|blocked)$/);
    if ((await client.status(id)).status === 'blocked') return ids;
  }
}

test('a worker that is killed with a lease of a budget has spent that lease, and nothing else', async () => {
  const tag = `tag-${randomUUID()}`;
  const limit = 50;
  // Each reply has five tokens, so that a call costs five dollars; prompts are free.
  const price = { input: 0, cachedInput: 0, output: 1e6 };
  const env = envOf({
    model: 'm',
    models: { m: { model: 'stub', price } },
    budgets: [{ tag, per: 'day', costUsd: limit }],
  });
  stub.answer(({ text, assistantMessages, attempt }) => {
    if (!text.includes(tag)) return undefined;
    if (!text.includes('twice')) return replyText('done');
    if (assistantMessages === 0) return replyCall('look', {});
    return withDelivery(replyText('done'), attempt === 1 ? { holdBeforeHeaders: tag } : {});
  });
  const id = `spender-${randomUUID()}`;
  const { handles, stop } = await killTogether(rig.client, {
    env,
    runs: [
      {
        id,
        input: { agent: 'spender', message: `twice ${tag}`, tags: [tag] },
        held: () => stub.barrier(tag).reached,
      },
    ],
  });
  const client = await clientFor(env);
  expect(await handles[0]?.result()).toMatchObject({ status: 'completed', answer: 'done' });
  const ids = [id, ...(await spendAll(client, tag))];
  const blocked = ids.at(-1) ?? '';
  const statuses = await Promise.all(ids.map((one) => client.status(one)));
  const costs = statuses.map(({ usage }) => usage.costUsd ?? 0);
  // The call in flight had a lease of five dollars, which the other worker does not spend again.
  expect(costs).toEqual([10, ...Array<number>(7).fill(5), 0]);
  const sum = costs.reduce((total, cost) => total + cost, 0);
  const budget: SharedBudget = { of: 'tag', name: tag, unit: 'costUsd', limit };
  expect(await readBudget(rig.client, budget)).toMatchObject({ spent: sum, held: limit - sum });
  expect((await client.status(blocked)).message).toContain(
    '45.00 of 50.00 USD spent, and other workers hold 5.00',
  );
  await client.cancel(blocked);
  await client.result(blocked);
  await client.disconnect();
  await stop();
});

/** Returns the blocks that a rate has handed out, in their order. */
async function blocksOf(model: string): Promise<readonly Block[]> {
  const { events } = await rig.client.workflow.getHandle(rateWorkflowId(model)).fetchHistory();
  return (events ?? []).flatMap((event) => {
    const { outcome } = event.workflowExecutionUpdateCompletedEventAttributes ?? {};
    const [payload] = outcome?.success?.payloads ?? [];
    return payload ? [defaultPayloadConverter.fromPayload<Block>(payload)] : [];
  });
}

const usesOf = ({ at, inMs }: Block): readonly number[] => inMs.map((ms) => at + ms);

test('a worker that is killed with a block of a rate loses that block, and no other use', async () => {
  const model = `m-${randomUUID()}`;
  const word = `word-${randomUUID()}`;
  const rate = { requests: 100, per: '100 seconds' } as const;
  const env = envOf({ model, models: { [model]: { model: 'stub', rate } } });
  const times: number[] = [];
  let isKilled = false;
  stub.answer(({ text }) => {
    if (!text.includes(word)) return undefined;
    times.push(performance.now());
    return withDelivery(replyText('done'), isKilled ? {} : { holdBeforeHeaders: word });
  });
  const runs = Array.from({ length: 6 }, (_, at) => ({
    id: `${word}-${at}`,
    input: { agent: 'spender', message: `${word} ${at}` },
    held: () => stub.barrier(word).reached,
  }));
  let handedOut: readonly Block[] = [];
  const { handles, stop } = await killTogether(rig.client, {
    env,
    runs,
    async last() {
      await expect
        .poll(async () => {
          handedOut = await blocksOf(model);
          return handedOut.flatMap(usesOf).length - times.length;
        })
        .toBeGreaterThan(1);
      isKilled = true;
    },
  });
  const ends = await Promise.all(handles.map((handle) => handle.result()));
  expect(ends).toEqual(ends.map(() => expect.objectContaining({ answer: 'done' }) as object));
  await stop();
  // A call that the kill has cut off is made again.
  expect(times.length).toBeGreaterThanOrEqual(runs.length);
  const blocks = await blocksOf(model);
  expect(blocks.length).toBeGreaterThan(handedOut.length);
  const uses = blocks.flatMap(usesOf);
  expect(times.length).toBeLessThanOrEqual(uses.length);
  const gap = gapMs({ requests: 100, perMs: 100_000 });
  for (const [index, block] of blocks.entries()) {
    const before = usesOf(blocks[index - 1] ?? { at: 0, inMs: [], againMs: 0 }).at(-1) ?? 0;
    // Each block follows the one before it, of any worker: no use is handed out twice, and none is left out.
    expect(usesOf(block)[0]).toBeCloseTo(Math.max(block.at, before + gap));
  }
  // In each five seconds, some more than the rate, because a busy machine may be late.
  expect(refusedBy({ requests: 7, perMs: 5_000 }, times)).toMatchObject({
    'in a window that slides': 0,
  });
});
