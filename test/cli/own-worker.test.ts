import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import type { Model } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { commandLine, type CommandEnd } from '../support/command.js';
import { untilStatus } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';

const command = await commandLine();
let rig: Rig;
let paid = 0;

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({}),
  effect: 'keyed',
  approval: 'always',
  execute: async () => {
    paid += 1;
    return 'paid';
  },
});
const model: Model = {
  call: async ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? replyText('done') : replyCall('pay', {}),
};
const agent = defineAgent({ name: 'payer', instructions: 'x', model: 'm', tools: [pay] });

beforeAll(async () => {
  rig = await createRig();
});
afterAll(async () => await rig.close());

async function perdure(...args: readonly string[]): Promise<CommandEnd> {
  const place = ['--address', inject('temporalAddress'), '--task-queue', rig.taskQueue];
  return await command.here([...args, '--no-config', ...place]).ended;
}

test('decisions and control need no worker elsewhere, and start no work', async () => {
  await rig.worker([agent], { models: { m: model } });
  const handle = await rig.start({ agent: 'payer', message: 'x', open: true }, `r-${randomUUID()}`);
  const id = handle.workflowId;
  await untilStatus(handle, 'waiting_decision');
  const { pending } = await handle.query<RunStatus>('status');
  await rig.stopWorkers();

  const limited = await perdure('limits', id, '--limit', 'steps=7', '--json');
  expect(limited).toMatchObject({ code: 0 });
  expect(JSON.parse(limited.stdout)).toMatchObject({ id, limits: { turn: { steps: 7 } } });
  const digest = ['--digest', pending[0]?.digest ?? ''];
  const approved = await perdure('resolve', id, 'r1', '--as', 'approve', ...digest, '--json');
  expect(approved.stderr).toMatch(
    /is decided as approve: the run resumes when a worker runs\. No worker is running\. Start one with: .* worker /,
  );
  expect(approved.stderr).not.toContain('makes no progress');
  expect(JSON.parse(approved.stdout)).toMatchObject({ id, as: 'approve', resolved: true });
  expect(await perdure('pause', id)).toMatchObject({ code: 0 });
  expect(await perdure('close', id)).toMatchObject({ code: 0 });
  const resumed = await perdure('resume', id);
  expect(resumed).toMatchObject({ code: 0 });
  expect(resumed.stderr).toContain(`Run ${id} resumes when a worker runs. No worker is running.`);
  expect(resumed.stderr).not.toContain('makes no progress');
  expect(paid).toBe(0);

  await rig.worker([agent], { models: { m: model } });
  const { outcome } = await rig.end(handle);
  expect(outcome).toMatchObject({ status: 'completed', answer: 'done' });
  expect(paid).toBe(1);
}, 120_000);
