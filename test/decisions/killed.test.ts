import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { reply } from '../../src/testing/steps.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { startLedger } from '../support/ledger.js';
import { createDesk, type Desk } from '../support/requests.js';
import { gate } from '../support/gate.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

let desk: Desk;
let home: string;
let stub: Stub;
const children: WorkerChild[] = [];

beforeAll(async () => {
  [desk, stub] = [await createDesk(), await startStub()];
  home = await mkdtemp(join(tmpdir(), 'perdure-killed-'));
});
afterAll(async () => {
  await Promise.all(children.map((each) => each.kill()));
  await Promise.all([desk.close(), stub.close()]);
  await rm(home, { recursive: true, force: true });
});

test.concurrent.each([
  ['put', 'keyed', 'after', { step: 1, part: 0 }],
  ['look', 'read', 'before', { step: 1, part: 0 }],
  ['pay', 'once', 'before', { amount: 7 }],
  ['pay', 'once', 'after', { amount: 7 }],
] as const)(
  'an approved call of %s (%s) is approved once, even if its worker is killed %s its effect',
  { timeout: 120_000 },
  async (name, effect, when, args) => {
    const ledger = await startLedger();
    const queue = `killed-${randomUUID()}`;
    const env = {
      ADDRESS: inject('temporalAddress'),
      QUEUE: queue,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    };
    stub.answer((request) => {
      if (!request.text.includes(queue)) return undefined;
      if (request.assistantMessages > 0) return reply.text('Done.');
      return reply.calls([{ name, arguments: args }]);
    });
    const held = gate();
    ledger.onAttempt = async (number, at) => {
      if (number === 1 && at === when) await held.wait();
    };
    const first = await workerChild(env);
    children.push(first);
    const handle = await desk.rig.client.workflow.start('agent', {
      taskQueue: queue,
      workflowId: queue,
      args: [{ agent: 'crash', message: queue, rules: [{ tool: name, then: 'ask' }] }],
    });
    await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
    expect(ledger.attempts).toEqual([]);
    await desk.decide(handle, { as: 'approve' });
    await held.reached;
    await first.kill();
    held.release();
    const second = await workerHere(env);
    if (effect === 'once') {
      // The approval was for one execution; whether it took effect is a separate request.
      const { pending } = await desk.statusWhere(handle, ({ pending: [one] }) => one?.id === 'r2');
      expect(pending).toMatchObject([{ kind: 'outcome_unknown', tool: name }]);
      await desk.decide(handle, { as: 'happened', result: 'paid' });
    }
    const { outcome, projection } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.' });
    await second.stop();
    await ledger.close();
    const made = ledger.attempts;
    expect(made.length).toBe(effect === 'once' ? 1 : 2);
    expect(new Set(made.map(({ key }) => key)).size).toBe(1);
    const approvals = (projection.state?.decisions ?? []).filter(({ as }) => as === 'approve');
    expect(approvals).toHaveLength(1);
  },
);
