import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { createClient, type PerdureClient } from '../../src/index.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { createRig, type Rig } from '../support/rig.js';
import { workerChild, workerHere } from '../support/worker-child.js';

const CALLERS = 100;

let rig: Rig;
let stub: Stub;
let home: string;
let client: PerdureClient;
let env: Record<string, string>;
beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  home = await mkdtemp(join(tmpdir(), 'perdure-callers-'));
  const address = inject('temporalAddress');
  const taskQueue = `callers-${randomUUID()}`;
  env = {
    ADDRESS: address,
    QUEUE: taskQueue,
    OPENAI_BASE_URL: stub.baseUrl,
    OPENAI_API_KEY: 'x',
    PERDURE_HOME: home,
  };
  client = await createClient({ address, taskQueue, env: { PERDURE_HOME: home } });
  const parts = Array.from({ length: CALLERS }, (_, part) => part);
  stub.answer(({ assistantMessages }) =>
    assistantMessages === 0
      ? replyCalls(parts.map((part) => ({ name: 'look', arguments: { part } })))
      : replyText('done'),
  );
});
afterAll(async () => {
  await client.disconnect();
  await Promise.all([rig.close(), stub.close()]);
  await rm(home, { recursive: true, force: true });
});

function anotherClient(): Client {
  return new Client({ connection: rig.client.connection });
}

type Call = (id: string, at: number) => Promise<unknown>;

/** Returns the call of each caller, of every kind that a run answers. */
async function callers(id: string): Promise<readonly Call[]> {
  await vi.waitFor(async () => expect((await client.status(id)).pending).toHaveLength(CALLERS), {
    timeout: 60_000,
    interval: 200,
  });
  const { pending } = await client.status(id);
  return pending.map(({ id: request, digest }): Call => async (run, at) => {
    // Half of the callers have clients of their own, which know nothing of each other.
    const own = at % 2 === 0 ? client : await createClient({ client: anotherClient(), env: {} });
    if (at % 4 === 0) await own.send(run, { id: `m-${at}`, message: `message ${at}` });
    if (at % 4 === 1) await own.setLimits(run, { run: { steps: 1_000 + at } });
    await own.resolve(run, { request, digest, as: 'deny' });
  });
}

/**
 * Lets all callers call at once. `onFirst`: after the first answer. Resolves when each has its answer,
 * with the number of requests that are still open.
 */
async function callAll(onFirst: () => Promise<void>): Promise<number> {
  const { id } = await client.start('asking', { message: 'go', open: true });
  const calls = await callers(id);
  let isFirst = true;
  await Promise.all(
    calls.map(async (call, at) => {
      await call(id, at);
      if (isFirst) {
        isFirst = false;
        await onFirst();
      }
    }),
  );
  const { pending } = await client.status(id);
  await client.cancel(id);
  await client.result(id);
  return pending.length;
}

test('a run answers all of its callers, also after its worker was killed', async () => {
  const first = await workerChild(env);
  expect(await callAll(() => Promise.resolve())).toBe(0);
  let second: Awaited<ReturnType<typeof workerHere>> | undefined;
  const open = await callAll(async () => {
    await first.kill();
    second = await workerHere(env);
  });
  expect(open).toBe(0);
  await second?.stop();
}, 240_000);
