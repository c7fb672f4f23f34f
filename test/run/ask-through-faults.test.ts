import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/index.js';
import { replyText } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { expectDelivered } from '../support/delivered.js';
import { workerChild } from '../support/worker-child.js';

test('a message finds the other worker when one of two is frozen, and its error tells when both are', async () => {
  const [stub, home] = [await startStub(), await mkdtemp(join(tmpdir(), 'perdure-frozen-'))];
  stub.answer(() => replyText('here'));
  const taskQueue = `frozen-${randomUUID()}`;
  const address = inject('temporalAddress');
  const env = { ADDRESS: address, QUEUE: taskQueue, OPENAI_BASE_URL: stub.baseUrl };
  const client = await createClient({ address, taskQueue, env: { PERDURE_HOME: home } });
  const id = `frozen-${randomUUID()}`;
  const start = { agent: 'crash' };
  const one = await workerChild({ ...env, PERDURE_HOME: home });
  onTestFinished(async () => {
    await one.kill();
    await client.disconnect();
    await stub.close();
    await rm(home, { recursive: true, force: true });
  });
  await client.send(id, 'first', { start });
  await client.result(id, { turn: 1 });

  // This worker has the run in its cache, so the server tries it first.
  process.kill(one.pid, 'SIGSTOP');
  const two = await workerChild({ ...env, PERDURE_HOME: home });
  onTestFinished(() => two.kill());
  const { turn } = await expectDelivered(client.send(id, 'second'));
  expect(turn).toBe(2);
  expect(await client.result(id, { turn })).toMatchObject({ answer: 'here' });

  process.kill(two.pid, 'SIGSTOP');
  const third = { message: 'third', id: 'm-3' };
  const given = client.send(id, third, { within: '3 seconds' });
  await expect(given).rejects.toMatchObject({
    code: 'not_delivered',
    mayArrive: true,
    worker: 'silent',
    messageId: 'm-3',
  });
  await expect(given).rejects.toThrow(
    `a worker polls task queue "${taskQueue}" but does not answer; it may be frozen, disconnected, or busy; ` +
      'it may still arrive; sent again with id "m-3" it is the same message',
  );
  const closing = client.close(id, { within: 1_500 });
  await expect(closing).rejects.toThrow('look at the status of the run before you repeat it');

  await one.kill();
  process.kill(two.pid, 'SIGCONT');
  expect(await expectDelivered(client.send(id, third))).toMatchObject({ turn: 3 });
  await client.result(id, { turn: 3 });
  await client.close(id);
  await client.result(id);
  const { messages } = await client.transcript(id);
  const texts = messages.filter(({ role }) => role === 'user').map(({ text }) => text);
  expect(texts).toEqual(['first', 'second', 'third']);
}, 180_000);
