import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { cancel } from '../../src/cli/commands/pause.js';
import type { Model } from '../../src/models/model.js';
import { createGate } from '../../src/testing/play.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runInProcess, type CommandOutput } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
const gate = createGate();
const stubborn = defineTool({
  name: 'stubborn',
  description: 'ignores its abort signal',
  input: z.object({}),
  effect: 'once',
  execute: async () => {
    await gate.wait(new AbortController().signal);
    return 'done';
  },
});
const model: Model = {
  call: async ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? replyText('done') : replyCall('stubborn'),
};

beforeAll(async () => {
  rig = await createRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm', tools: [stubborn] });
  await rig.worker([agent], { models: { m: model } });
});
afterAll(async () => await rig.close());

async function type(options: Parameters<typeof cancel.run>[1]): Promise<CommandOutput> {
  const place = { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue };
  return await runInProcess(cancel, options, place);
}

test('a second cancel says that the first one was requested already', async () => {
  const workflowId = `orphan-${randomUUID()}`;
  const taskQueue = `nobody-${randomUUID()}`;
  const args = [{ agent: 'files', message: 'x' }];
  const handle = await rig.client.workflow.start('agent', { workflowId, taskQueue, args });
  expect((await type({ id: workflowId })).stderr).toMatch(/^Cancellation requested\. It takes/);
  for (const detach of [false, true]) {
    const again = await type({ id: workflowId, detach });
    expect(again.stderr).toMatch(/^Cancellation was already requested\./);
  }
  await handle.terminate();
});

test('a second cancel of a turn says so, too', async () => {
  const handle = await rig.start({ agent: 'a', message: 'x', open: true });
  const options = { id: handle.workflowId, turn: true, detach: true };
  await gate.barrier.reached;
  expect((await type(options)).stderr).toMatch(/^Cancellation of turn 1 of run \S+ requested\./);
  expect((await type(options)).stderr).toMatch(
    /^Cancellation of turn 1 of run \S+ was already requested\./,
  );
  gate.barrier.release();
  await handle.terminate();
});
