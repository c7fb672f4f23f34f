import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { reply } from '../../src/testing/steps.js';
import { startStub } from '../../src/testing/stub-server.js';
import { gate } from '../support/gate.js';
import { startLedger } from '../support/ledger.js';
import { expectKeptReplays } from '../support/replays.js';
import { createRig, type Rig } from '../support/rig.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

let rig: Rig;
let home: string;
const children: WorkerChild[] = [];

beforeAll(async () => {
  rig = await createRig();
  home = await mkdtemp(join(tmpdir(), 'perdure-killed-graph-'));
});
afterAll(async () => {
  await Promise.all(children.map((each) => each.kill()));
  await rig.close();
  await rm(home, { recursive: true, force: true });
  await expectKeptReplays();
});

/** The attempts in order: run, route, three items, the nested graph, the tool, the last run. */
const PLACES = [
  { kind: 'run', number: 1, when: 'after' },
  { kind: 'route', number: 2, when: 'before' },
  { kind: 'each', number: 4, when: 'after' },
  { kind: 'nested graph', number: 6, when: 'after' },
  { kind: 'tool', number: 7, when: 'before' },
] as const;

test.concurrent.each(PLACES)(
  'a worker killed in a $kind repeats nothing that had finished',
  { timeout: 120_000 },
  async ({ number: killedAt, when }) => {
    const ledger = await startLedger();
    const queue = `walker-${randomUUID()}`;
    const env = {
      ADDRESS: inject('temporalAddress'),
      QUEUE: queue,
      LEDGER: ledger.url,
      PERDURE_HOME: home,
    };
    const held = gate();
    ledger.onAttempt = async (number, at) => {
      if (number === killedAt && at === when) await held.wait();
    };
    const first = await workerChild(env);
    children.push(first);
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: queue,
      workflowId: queue,
      args: [{ agent: 'walker', input: {} }],
    });
    await held.reached;
    await first.kill();
    held.release();
    const second = await workerHere(env);
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(outcome.output).toEqual({
      results: [1, 2, 3].map((value) => ({ ok: true, value })),
      n: {},
    });
    await second.stop();
    await ledger.close();
    // Two items of the list are in flight at the same time, so both may be attempted again.
    expect(ledger.effects.size).toBe(8);
    expect(ledger.attempts.length - ledger.effects.size).toBeLessThanOrEqual(2);
    const repeated = ledger.attempts.filter(
      ({ key }, index) => ledger.attempts.findIndex((one) => one.key === key) < index,
    );
    const inFlight = new Set(
      ledger.attempts.slice(Math.max(0, killedAt - 2), killedAt + 1).map(({ key }) => key),
    );
    for (const { key } of repeated) expect(inFlight).toContain(key);
  },
);

test.concurrent.each(['decide', 'agent'] as const)(
  'a worker killed in the model call of a node of kind %s repeats nothing that had finished',
  { timeout: 120_000 },
  async (kind) => {
    const [ledger, stub] = [await startLedger(), await startStub()];
    const queue = `decider-${randomUUID()}`;
    const env = {
      ADDRESS: inject('temporalAddress'),
      QUEUE: queue,
      LEDGER: ledger.url,
      PERDURE_HOME: home,
      OPENAI_BASE_URL: stub.baseUrl,
      OPENAI_API_KEY: 'x',
    };
    const held = stub.barrier(kind);
    const decision = [{ name: 'pay', arguments: {} }];
    const hold = { holdBeforeHeaders: kind };
    const first = await workerChild(env);
    children.push(first);
    stub.script(
      ...(kind === 'decide' ? [reply.calls(decision, hold)] : []),
      reply.calls(decision),
      ...(kind === 'agent' ? [reply.text('Paid.', hold)] : []),
      reply.text('Paid.'),
    );
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: queue,
      workflowId: queue,
      args: [{ agent: 'decider', message: 'go' }],
    });
    await held.reached;
    await first.kill();
    held.release();
    const second = await workerHere(env);
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Paid.', toolCalls: 1 });
    await second.stop();
    // The call that was in flight is repeated, and nothing else.
    stub.assertConsumed();
    await Promise.all([ledger.close(), stub.close()]);
    expect(ledger.attempts).toHaveLength(1);
  },
);
