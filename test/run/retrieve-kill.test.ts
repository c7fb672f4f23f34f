import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { reply } from '../../src/testing/steps.js';
import { startStub } from '../../src/testing/stub-server.js';
import { startLedger } from '../support/ledger.js';
import { expectPromptsMatch } from '../support/prompts.js';
import { createRig, type Rig } from '../support/rig.js';
import { workerChild, workerHere } from '../support/worker-child.js';

let rig: Rig;
let home: string;
beforeAll(async () => {
  rig = await createRig();
  home = await mkdtemp(join(tmpdir(), 'perdure-retrieve-kill-'));
});
afterAll(async () => {
  await rig.close();
  await rm(home, { recursive: true, force: true });
});

test.concurrent.each([
  { where: 'retrieval', retrievals: 2, requests: 1 },
  { where: 'model call', retrievals: 1, requests: 2 },
] as const)(
  'a kill of the worker with SIGKILL in the $where does not change the result',
  { timeout: 90_000 },
  async ({ where, retrievals, requests }) => {
    const [stub, ledger] = [await startStub(), await startLedger()];
    const queue = `retrieve-kill-${randomUUID()}`;
    const env = {
      ADDRESS: inject('temporalAddress'),
      QUEUE: queue,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    };
    const reached = new Promise<void>((resolve) => {
      ledger.onAttempt = (number, when) => {
        if (where !== 'retrieval' || number !== 1 || when !== 'after') return undefined;
        resolve();
        return new Promise(() => undefined);
      };
      stub.answer(({ number }) => {
        if (where !== 'model call' || number !== 1) return reply.text('answered');
        resolve();
        return reply.text('lost', { holdBeforeHeaders: 'never' });
      });
    });
    const first = await workerChild(env);
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: queue,
      workflowId: queue,
      args: [{ agent: 'retrieving', message: 'rain' }],
    });
    await reached;
    await first.kill();
    const second = await workerHere(env);
    const { outcome, projection } = await rig.end(handle);
    await Promise.all([second.stop(), stub.close(), ledger.close()]);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'answered', steps: 1 });
    expect(ledger.attempts).toHaveLength(retrievals);
    expect(stub.requestCount).toBe(requests);
    expect(projection.messages.map(({ role }) => role)).toEqual([
      'user',
      'user',
      'user',
      'assistant',
    ]);
    expectPromptsMatch(stub.requests, projection.messages);
  },
);
