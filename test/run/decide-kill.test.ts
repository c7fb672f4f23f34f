import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { replyText } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { createRig, type Rig } from '../support/rig.js';
import { workerChild, workerHere } from '../support/worker-child.js';

let rig: Rig;
let home: string;
beforeAll(async () => {
  rig = await createRig();
  home = await mkdtemp(join(tmpdir(), 'perdure-decide-kill-'));
});
afterAll(async () => {
  await rig.close();
  await rm(home, { recursive: true, force: true });
});

test.each([
  ['decision', 'deciding'],
  ['node', 'generating'],
])(
  'a worker killed by SIGKILL in the fifth model call of a %s: the first four are paid for once',
  async (_, agent) => {
    const stub = await startStub();
    const queue = `decide-kill-${randomUUID()}`;
    const env = {
      ADDRESS: inject('temporalAddress'),
      QUEUE: queue,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    };
    const asked: string[] = [];
    const reached = new Promise<void>((resolve) => {
      stub.answer(({ text }) => {
        const [, number = ''] = /question (\d)/.exec(text) ?? [];
        asked.push(number);
        if (asked.length !== 5) return replyText(`answer ${number}`);
        resolve();
        return replyText('lost', { holdBeforeHeaders: 'never' });
      });
    });
    const first = await workerChild(env);
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: queue,
      workflowId: queue,
      args: [{ agent, message: 'Go' }],
    });
    await reached;
    await first.kill();
    const second = await workerHere(env);
    const { outcome } = await rig.end(handle);
    await Promise.all([second.stop(), stub.close()]);
    expect(asked).toEqual(['1', '2', '3', '4', '5', '5']);
    expect(outcome).toMatchObject({
      status: 'completed',
      answer: 'answer 1 answer 2 answer 3 answer 4 answer 5',
    });
  },
);
