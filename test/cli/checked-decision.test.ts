import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { edit } from '../../src/cli/commands/approve.js';
import { inbox, list } from '../../src/cli/commands/list.js';
import { send } from '../../src/cli/commands/send.js';
import { status as showStatus } from '../../src/cli/commands/status.js';
import type { Command } from '../../src/cli/context.js';
import type { RunStatus } from '../../src/core/state/status.js';
import type { Model } from '../../src/models/model.js';
import { replyCall } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

const refund = defineTool({
  name: 'refund',
  description: 'refunds',
  input: z.object({ euros: z.number() }),
  effect: 'once',
  approval: 'always',
  execute: ({ euros }) => `refunded ${euros}`,
});

async function decide<Options>(
  command: Command<Options>,
  options: Options,
  how: { readonly json?: boolean } = {},
): Promise<CommandOutput> {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  return await runInProcess(command, options, { ...place, ...how });
}

test('inbox, status, and a refusal say that an edit is being checked, and what helps', async () => {
  const taskQueue = `${rig.taskQueue}-edited`;
  const pays: Model = { call: async () => replyCall('refund', { euros: 1 }) };
  // The configuration of the command has an agent of this name.
  const payer = defineAgent({ name: 'files', instructions: 'x', model: 'pays', tools: [refund] });
  const worker = await rig.worker([payer], { taskQueue, models: { pays } });
  const id = `edited-${randomUUID()}`;
  const args = [{ agent: 'files', message: 'x' }];
  const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
  await vi.waitFor(
    async () => expect(await handle.query('status')).toMatchObject({ status: 'waiting_decision' }),
    { timeout: 20_000, interval: 50 },
  );
  const [request] = (await handle.query<RunStatus>('status')).pending;
  const digest = request?.digest ?? '';
  await worker.shutdown();
  await decide(edit, { id, request: 'r1', digest, arguments: { euros: 2 } });
  const line = 'A decision (edit) waits for a worker to check it; no other can be made until then.';
  const start = /No worker is running\. Start one with: .* worker .*--task-queue /;
  const listed = await decide(inbox, {});
  const [, block = ''] = listed.stdout.split(`r1 of run ${id}\n`);
  expect(block.split('\n\n')[0]).toContain(line);
  expect(listed.stderr).toMatch(
    new RegExp(`A decision of run ${id} waits for a worker to check it\\. ${start.source}`),
  );
  const rows: readonly unknown[] = JSON.parse((await decide(inbox, {}, { json: true })).stdout);
  expect(rows).toContainEqual(
    expect.objectContaining({ run: id, checking: true, fix: expect.stringContaining('inbox') }),
  );
  for (const shown of [await decide(inbox, { id }), await decide(showStatus, { id })] as const) {
    expect(shown.stdout).toContain(line);
    expect(shown.stdout).toMatch(start);
  }
  const word = 'waiting_decision (a decision is being checked)';
  expect((await decide(showStatus, { id })).stdout).toContain(`status    ${word}\n`);
  await vi.waitFor(
    async () => {
      const { stdout } = await decide(list, { idPrefix: id });
      expect(stdout).toMatch(/ {2}waiting_decision {2,}a decision is being checked {2}/);
    },
    { timeout: 10_000 },
  );
  const page = JSON.parse((await decide(list, { idPrefix: id }, { json: true })).stdout);
  expect(page).toMatchObject({ rows: [{ id, status: 'waiting_decision', checking: true }] });
  const again = { id, request: 'r1', arguments: { euros: 3 } };
  await expect(decide(edit, again)).rejects.toThrow(/^the decision .* \(checking\): another one/);
  await expect(decide(edit, { ...again, digest })).rejects.toThrow(
    /another decision about r1 \(edit\) waits .*; no worker is running\. Start one with: /,
  );
  await handle.terminate();
});

test('list says what status says of a run whose decision was recorded, and no worker has processed', async () => {
  const taskQueue = `${rig.taskQueue}-recorded`;
  const pays: Model = { call: async () => replyCall('refund', { euros: 1 }) };
  const payer = defineAgent({ name: 'files', instructions: 'x', model: 'pays', tools: [refund] });
  const worker = await rig.worker([payer], { taskQueue, models: { pays } });
  const id = `recorded-${randomUUID()}`;
  const args = [{ agent: 'files', message: 'x', open: true }];
  const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId: id, args });
  await vi.waitFor(
    async () => expect(await handle.query('status')).toMatchObject({ status: 'waiting_decision' }),
    { timeout: 20_000, interval: 50 },
  );
  const [request] = (await handle.query<RunStatus>('status')).pending;
  const row = async (): Promise<unknown> =>
    JSON.parse((await decide(list, { idPrefix: id }, { json: true })).stdout).rows[0];
  await vi.waitFor(async () => expect(await row()).toMatchObject({ status: 'waiting_decision' }), {
    timeout: 10_000,
  });
  await worker.shutdown();
  const sent = { id, message: ['yes'], digest: request?.digest ?? '', detach: true, wait: true };
  await decide(send, sent);
  const shown: RunStatus = JSON.parse((await decide(showStatus, { id }, { json: true })).stdout);
  expect(shown.status).toBe('working');
  expect(await row()).toMatchObject({ id, status: 'working', reason: shown.reason });
  const listed = await decide(inbox, {});
  expect(listed.stdout).not.toContain(id);
  expect(listed.stderr).toMatch(
    new RegExp(
      `A decision of run ${id} takes effect when a worker runs; it is left out\\. No worker is running\\. Start one`,
    ),
  );
  await handle.terminate();
}, 60_000);
