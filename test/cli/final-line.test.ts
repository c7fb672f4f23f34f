import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { attach, fork } from '../../src/cli/commands/run.js';
import { transcript } from '../../src/cli/commands/transcript.js';
import type { Command } from '../../src/cli/context.js';
import { ModelError, type Model } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

const LONG = `MCP server "shop" cannot be used: ${'a reason that takes a while to tell '.repeat(4)}; run perdure doctor`;
let rig: Rig;
const model: Model = {
  call: () => Promise.reject(new ModelError(LONG, { kind: 'request', type: 'http_400' })),
};

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });
  const strict = { instructions: 'x', model: 'prose', output: z.object({ total: z.number() }) };
  const total = defineAgent({ name: 'total', ...strict });
  const prose: Model = { call: async () => replyText('about three') };
  await rig.worker([agent, total], { models: { m: model, prose } });
});
afterAll(async () => await rig.close());

async function type<Options>(
  command: Command<Options>,
  options: Options,
  taskQueue = rig.taskQueue,
): Promise<CommandOutput> {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue };
  return await runInProcess(command, options, place);
}

test('the final line of a run has the end of its error, with a command that can be pasted', async () => {
  const handle = await rig.start({ agent: 'a', message: 'x' });
  await rig.end(handle);
  const { code, stderr } = await type(attach, { id: handle.workflowId, wait: true });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^failed \(\w+\): .*MCP server "shop" cannot be used: .*; run \S.* doctor --address \S+ --task-queue \S+ · /m,
  );
});

test('a fork of a run whose agent the configuration lacks names the run, the agent, and what to do', async () => {
  const workflowId = `foreign-${randomUUID()}`;
  const taskQueue = `nobody-${randomUUID()}`;
  const args = [{ agent: 'clerk', message: 'x' }];
  const handle = await rig.client.workflow.start('agent', { workflowId, taskQueue, args });
  const forked = type(fork, { run: workflowId, message: ['again'], wait: true }, taskQueue);
  await expect(forked).rejects.toThrow(
    `run: ${workflowId} is a run of agent "clerk", which this configuration does not have; fork it in the project that has the agent, or name its configuration with --config`,
  );
  await handle.terminate();
});

test('a run whose answers were refused names the command that shows them', async () => {
  const handle = await rig.start({ agent: 'total', message: 'x' });
  await rig.end(handle);
  const { workflowId: id } = handle;
  const { stderr } = await type(attach, { id, wait: true });
  expect(stderr).toMatch(
    /^failed \(invalid_output\).*\nRead the refused answers with: .* transcript .*--side/m,
  );
  expect((await type(transcript, { id, side: true })).stdout).toContain('about three');
});
