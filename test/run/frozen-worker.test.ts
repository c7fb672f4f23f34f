import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../src/index.js';
import { reply } from '../../src/testing/steps.js';
import { startStub } from '../../src/testing/stub-server.js';
import { startLedger } from '../support/ledger.js';
import { workerChild, type WorkerChild } from '../support/worker-child.js';

const PAYMENTS = 5;

test('a once tool that a frozen worker held is not executed when the worker thaws', async () => {
  const [stub, ledger] = [await startStub(), await startLedger()];
  const home = await mkdtemp(join(tmpdir(), 'perdure-frozen-'));
  const taskQueue = `frozen-${randomUUID()}`;
  const address = inject('temporalAddress');
  const client = await createClient({ address, taskQueue, env: { PERDURE_HOME: home } });
  const child = async (role: string): Promise<WorkerChild> => {
    const worker = await workerChild({
      ADDRESS: address,
      QUEUE: taskQueue,
      ROLE: role,
      LEDGER: ledger.url,
      OPENAI_BASE_URL: stub.baseUrl,
      PERDURE_HOME: home,
    });
    onTestFinished(() => worker.kill());
    return worker;
  };
  onTestFinished(async () => {
    await client.disconnect();
    await Promise.all([stub.close(), ledger.close()]);
    await rm(home, { recursive: true, force: true });
  });
  stub.answer((request) => {
    if (request.assistantMessages > 0) return reply.text('paid');
    const calls = Array.from({ length: PAYMENTS }, (_, amount) => ({
      name: 'pay',
      arguments: { amount },
    }));
    return reply.calls(calls, { holdBeforeHeaders: 'asked' });
  });
  const asked = stub.barrier('asked');
  const [frozen] = await Promise.all([child('activities'), child('workflows')]);
  const { id } = await client.start('crash', { message: 'pay' });
  await asked.reached;
  await client.pause(id);
  asked.release();
  // The reply is recorded, and the run waits with its calls. The worker is frozen while it polls.
  await vi.waitFor(async () =>
    expect(await client.status(id)).toMatchObject({ status: 'paused', step: 1, doing: null }),
  );
  process.kill(frozen.pid, 'SIGSTOP');
  await client.resume(id);
  const other = await child('activities');

  // The server hands the payments to polls of the frozen worker. Their outcome is unknown, and a person
  // who sees no payment asks for another attempt.
  let held = 0;
  await vi.waitFor(
    async () => {
      const { outcome, pending } = await client.status(id);
      for (const { call, idempotencyKey = '' } of pending) {
        expect(ledger.effects.has(idempotencyKey)).toBe(false);
        held += 1;
        await client.resolve(id, { call, as: 'retry' });
      }
      expect(outcome).toMatchObject({ status: 'completed' });
    },
    { timeout: 60_000, interval: 100 },
  );
  expect(held).toBeGreaterThan(0);
  expect(ledger.attempts).toHaveLength(PAYMENTS);

  await other.kill();
  process.kill(frozen.pid, 'SIGCONT');
  // Whatever the thawed worker held comes before the calls of a new run, which it alone can execute.
  const again = await client.start('crash', { message: 'pay again' });
  expect(await client.result(again)).toMatchObject({ status: 'completed' });
  expect(ledger.attempts).toHaveLength(PAYMENTS * 2);
  expect(ledger.effects.size).toBe(PAYMENTS * 2);
}, 120_000);
