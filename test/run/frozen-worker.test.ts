import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { createClient, defineAgent, type PerdureClient } from '../../src/index.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { gate } from '../support/gate.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { ownBundle } from '../support/own-bundle.js';
import { startProxy } from '../support/proxy.js';
import { createRig } from '../support/rig.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

const PAYMENTS = 5;
/** Longer than anything takes on a busy machine. */
const WAIT = { timeout: 20_000 };
const address = inject('temporalAddress');
/** The environment of a process whose clock is a day behind. */
const behind = {
  NODE_OPTIONS: `--import=${new URL('../support/shift-clock.js', import.meta.url).href}`,
  CLOCK_SHIFT_MS: '-86400000',
};

interface Setting {
  readonly stub: Stub;
  readonly ledger: Ledger;
  readonly client: PerdureClient;
  /** Starts a worker process for activities, which reaches Temporal at `at`. */
  readonly child: (at?: string, env?: Readonly<Record<string, string>>) => Promise<WorkerChild>;
  /** Starts a worker of this process, which is not frozen. */
  readonly here: (role: 'activities' | 'workflows') => Promise<{ stop(): Promise<void> }>;
}

/** A stub, a ledger, and a task queue, all closed after the test. */
async function createSetting(): Promise<Setting> {
  const [stub, ledger] = [await startStub(), await startLedger()];
  const home = await mkdtemp(join(tmpdir(), 'perdure-frozen-'));
  const taskQueue = `frozen-${randomUUID()}`;
  const client = await createClient({ address, taskQueue, env: { PERDURE_HOME: home } });
  const env = { QUEUE: taskQueue, LEDGER: ledger.url, OPENAI_BASE_URL: stub.baseUrl };
  const child: Setting['child'] = async (at = address, more = {}) => {
    const worker = await workerChild({
      ...env,
      ...more,
      ADDRESS: at,
      ROLE: 'activities',
      PERDURE_HOME: home,
    });
    onTestFinished(() => worker.kill());
    return worker;
  };
  const here: Setting['here'] = async (role) => {
    const worker = await workerHere({ ...env, ADDRESS: address, ROLE: role, PERDURE_HOME: home });
    let stopped: Promise<void> | undefined;
    const stop = (): Promise<void> => (stopped ??= worker.stop());
    onTestFinished(stop);
    return { stop };
  };
  onTestFinished(async () => {
    await client.disconnect();
    await Promise.all([stub.close(), ledger.close()]);
    await rm(home, { recursive: true, force: true });
  });
  return { stub, ledger, client, child, here };
}

test('a once tool that a frozen worker held is not executed when the worker thaws, although its clock is a day behind', async () => {
  const { stub, ledger, client, child, here } = await createSetting();
  stub.answer((request) => {
    if (request.assistantMessages > 0) return replyText('paid');
    const calls = Array.from({ length: PAYMENTS }, (_, amount) => ({
      name: 'pay',
      arguments: { amount },
    }));
    return replyCalls(calls, { holdBeforeHeaders: 'asked' });
  });
  const asked = stub.barrier('asked');
  const [frozen] = await Promise.all([child(address, behind), here('workflows')]);
  const { id } = await client.start('crash', { message: 'pay' });
  await asked.reached;
  await client.pause(id);
  asked.release();
  // The reply is recorded, and the run waits with its calls. The worker is frozen while it polls.
  await vi.waitFor(
    async () =>
      expect(await client.status(id)).toMatchObject({ status: 'paused', step: 1, doing: null }),
    WAIT,
  );
  process.kill(frozen.pid, 'SIGSTOP');
  await client.resume(id);
  const other = await here('activities');

  // The server hands the payments to polls of the frozen worker. Their outcome is unknown, and a
  // person who sees no payment requests another attempt.
  let held = 0;
  await vi.waitFor(
    async () => {
      const { outcome, pending } = await client.status(id);
      for (const { id: request, digest, idempotencyKey = '' } of pending) {
        expect(ledger.effects.has(idempotencyKey)).toBe(false);
        held += 1;
        await client.resolve(id, { request, digest, as: 'retry' });
      }
      expect(outcome).toMatchObject({ status: 'completed' });
    },
    { timeout: 60_000, interval: 100 },
  );
  expect(held).toBeGreaterThan(0);
  expect(ledger.attempts).toHaveLength(PAYMENTS);

  await other.stop();
  process.kill(frozen.pid, 'SIGCONT');
  // Whatever the thawed worker held precedes the calls of a new run, which only that worker can
  // execute.
  const again = await client.start('crash', { message: 'pay again' });
  expect(await client.result(again)).toMatchObject({ status: 'completed' });
  expect(ledger.attempts).toHaveLength(PAYMENTS * 2);
  expect(ledger.effects.size).toBe(PAYMENTS * 2);
}, 120_000);

test('a once tool that freezes while it runs takes effect once, because its verify fences', async () => {
  const { stub, ledger, client, child, here } = await createSetting();
  const proxy = await startProxy(address);
  onTestFinished(() => proxy.close());
  stub.script(replyCalls([{ name: 'transfer', arguments: { amount: 7 } }]), replyText('paid'));
  const quote = gate();
  ledger.onAttempt = async (number, when) => {
    if (number === 1 && when === 'before') await quote.wait();
  };
  const transfers = (): number => ledger.attempts.filter(({ tool }) => tool === 'transfer').length;

  const [frozen] = await Promise.all([child(proxy.address), here('workflows')]);
  const { id } = await client.start('crash', { message: 'pay' });
  await quote.reached;
  // The tool runs, and has not paid. The server gives nothing more to a worker that is cut off.
  process.kill(frozen.pid, 'SIGSTOP');
  proxy.cut();
  quote.release();
  await here('activities');
  expect(await client.result(id)).toMatchObject({ status: 'completed', answer: 'paid' });
  expect([transfers(), ledger.refused.length]).toEqual([1, 0]);

  process.kill(frozen.pid, 'SIGCONT');
  await vi.waitFor(() => expect(transfers()).toBe(2), WAIT);
  await vi.waitFor(() => expect(ledger.refused).toHaveLength(1), WAIT);
  // The model read the result of the second execution.
  const { messages } = await client.transcript(id);
  expect(messages.find(({ role }) => role === 'tool')?.text).toContain('"done":"transfer"');
}, 60_000);

test('a model call that a frozen worker held is not paid for again when the worker thaws', async () => {
  const { stub, client, child, here } = await createSetting();
  stub.answer(() => replyText('hello'));
  const [frozen] = await Promise.all([child(), here('workflows')]);
  const runs = await Promise.all(
    Array.from({ length: 8 }, () => client.start('crash', { message: 'hi', open: true })),
  );
  await Promise.all(runs.map(({ id }) => client.result(id, { turn: 1 })));
  process.kill(frozen.pid, 'SIGSTOP');
  // The server hands calls to polls of the frozen worker, and later to the other one.
  await Promise.all(runs.map(({ id }) => client.send(id, 'again')));
  const other = await here('activities');
  await Promise.all(runs.map(({ id }) => client.result(id, { turn: 2 })));
  expect(await repeatedAttempts(runs.map(({ id }) => id))).toBeGreaterThan(0);
  const paid = stub.requestCount;

  await other.stop();
  process.kill(frozen.pid, 'SIGCONT');
  // Only the thawed worker can execute new runs, so it has by then processed what it held.
  for (let run = 1; run <= 3; run += 1) {
    const after = await client.start('crash', { message: 'hi' });
    expect(await client.result(after)).toMatchObject({ status: 'completed' });
  }
  expect(stub.requestCount).toBe(paid + 3);
}, 120_000);

/** The SDK ends workflow code after 5 s by default, which leaves the process corrupted. */
const LONGER_THAN_SCRIPTS_MS = 6_000;

test('a worker that freezes in workflow code continues when it thaws', async () => {
  const rig = await createRig();
  onTestFinished(() => rig.close());
  const model = { call: async () => replyText('hello') };
  const hello = defineAgent({ name: 'hello', instructions: 'x', model: 'm' });
  await rig.worker([hello], { models: { m: model }, workflowBundle: await ownBundle() });
  const { taskQueue, client } = rig;
  const frozen = await client.workflow.execute('standStill', {
    taskQueue,
    workflowId: `frozen-${randomUUID()}`,
    workflowTaskTimeout: '1 minute',
    args: [LONGER_THAN_SCRIPTS_MS],
  });
  expect(frozen).toBe('continued');
  // The worker still answers.
  const { outcome } = await rig.run({ agent: 'hello', message: 'hi' });
  expect(outcome).toMatchObject({ status: 'completed', answer: 'hello' });
}, 60_000);

/** The number of activities that needed more than one attempt. */
async function repeatedAttempts(ids: readonly string[]): Promise<number> {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  try {
    const histories = await Promise.all(
      ids.map((id) => client.workflow.getHandle(id).fetchHistory()),
    );
    return histories
      .flatMap(({ events }) => events ?? [])
      .filter((event) => (event.activityTaskStartedEventAttributes?.attempt ?? 1) > 1).length;
  } finally {
    await connection.close();
  }
}
