import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { readRun } from '../../src/history/read-run.js';
import { toRunStatus } from '../../src/client/status.js';
import { replyCalls, replyText, type Reply } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';
import { workerChild, type WorkerChild } from '../support/worker-child.js';

let rig: Rig;
let stub: Stub;
let folder: string;
let workers: readonly WorkerChild[];
const WAIT = { timeout: 20_000, interval: 50 };
const taskQueue = `blocking-checks-${randomUUID()}`;

beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  folder = await mkdtemp(join(tmpdir(), 'perdure-blocking-checks-'));
  const env = {
    ADDRESS: inject('temporalAddress'),
    QUEUE: taskQueue,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_HOME: folder,
    CHECKS: join(folder, 'checks'),
    // Shorter than a check blocks.
    HEARTBEAT_MS: '1000',
  };
  workers = await Promise.all([workerChild(env), workerChild(env)]);
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  await rig.close();
  await stub.close();
  await rm(folder, { recursive: true, force: true });
});

async function run(agent: string, message: string, ...steps: readonly Reply[]): Promise<Ended> {
  stub.scriptFor(message, ...steps);
  const workflowId = `${agent}-${randomUUID()}`;
  const args = [{ agent, message }];
  const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId, args });
  return await rig.end(handle);
}

const requests = (marker: string): number =>
  stub.requests.filter(({ text }) => text.includes(marker)).length;
const checks = async (what: string): Promise<number> =>
  (await readFile(join(folder, 'checks'), 'utf8')).split('\n').filter((line) => line === what)
    .length;

describe('a check that blocks its worker beyond the heartbeat timeout', () => {
  test('runs again on the recorded reply, which is not paid for again', async () => {
    const long = 'x'.repeat(60_000);
    const answer = JSON.stringify({ name: `answer-a ${long}` });
    const { outcome } = await run('blocking-answer', 'conversation-a', replyText(answer));
    expect(outcome).toMatchObject({ status: 'completed', output: { name: `answer-a ${long}` } });
    expect(requests('conversation-a')).toBe(1);
    expect(await checks(`answer-a ${long}`)).toBe(2);
  });

  test('blocks the run if the recorded reply is unreadable, which is never paid for again', async () => {
    const blobs = join(folder, 'blobs');
    const name = `answer-c ${'y'.repeat(60_000)}`;
    stub.scriptFor('conversation-c', replyText(JSON.stringify({ name })));
    const workflowId = `blocking-answer-${randomUUID()}`;
    const args = [{ agent: 'blocking-answer', message: 'conversation-c' }];
    const handle = await rig.client.workflow.start('agent', { taskQueue, workflowId, args });
    // The first check has begun: the reply is stored, and the next attempt is about to read it.
    await vi.waitFor(async () => expect(await checks(name)).toBe(1), WAIT);
    await rename(blobs, `${blobs}.away`);
    const status = async () => toRunStatus(await readRun(rig.client, workflowId), Date.now());
    await vi.waitFor(
      async () =>
        expect(await status()).toMatchObject({
          status: 'blocked',
          reason: 'storage',
          message: expect.stringMatching(/^a reply that was paid for cannot be read: blob /),
        }),
      WAIT,
    );
    await rename(`${blobs}.away`, blobs);
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', output: { name } });
    expect(requests('conversation-c')).toBe(1);
  });

  test('is abandoned after two attempts, and the model gets an error', async () => {
    const { outcome, projection } = await run(
      'blocking-arguments',
      'conversation-b',
      replyCalls([{ name: 'file', arguments: { note: 'note-b' } }]),
      replyText('I could not'),
    );
    expect(outcome).toMatchObject({ status: 'completed', answer: 'I could not' });
    expect(projection.messages[2]?.text).toMatch(/could not be checked: the check took too long/);
    expect(requests('conversation-b')).toBe(2);
    expect(await checks('note-b')).toBe(2);
  });
});
