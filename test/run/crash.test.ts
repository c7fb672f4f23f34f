import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection, Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ensureServer } from '../../src/server/ensure-server.js';
import { stopServer } from '../../src/server/locate-server.js';
import { reply } from '../../src/testing/steps.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { CRASH_STEPS, crashAnswer } from '../support/crash-agent.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { createRig, type Rig } from '../support/rig.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

let rig: Rig;
let home: string;
let stub: Stub;
let ledger: Ledger;
const workers: WorkerChild[] = [];

beforeAll(async () => {
  [rig, stub, ledger] = [await createRig(), await startStub(), await startLedger()];
  home = await mkdtemp(join(tmpdir(), 'perdure-crash-'));
});
afterAll(async () => {
  await Promise.all(workers.map((each) => each.kill()));
  await Promise.all([rig.close(), stub.close(), ledger.close()]);
  await rm(home, { recursive: true, force: true });
});

const queueEnv = (rest: Record<string, string> = {}): Record<string, string> => ({
  ADDRESS: inject('temporalAddress'),
  QUEUE: `crash-${randomUUID()}`,
  LEDGER: ledger.url,
  OPENAI_BASE_URL: stub.baseUrl,
  PERDURE_HOME: home,
  ...rest,
});

async function worker(env: Record<string, string>): Promise<WorkerChild> {
  const child = await workerChild(env);
  workers.push(child);
  return child;
}

describe('a step cap reached around a crash', () => {
  test.concurrent.each([
    ['answer', 'before', { status: 'stopped', reason: 'steps', answer: 'closing words' }, 3],
    ['answer', 'after', { status: 'stopped', reason: 'steps', answer: 'closing words' }, 3],
    ['compose', 'after', { status: 'stopped', reason: 'steps' }, 2],
    ['fail', 'after', { status: 'failed', reason: 'limit', limit: 'steps', answer: null }, 2],
  ])(
    'counts once with onLimit %s, killed %s the cap',
    { timeout: 120_000 },
    async (onLimit, when, outcome, requests) => {
      const marker = `cap-${onLimit}-${when}-`;
      const env = queueEnv({ STEPS: '2', ON_LIMIT: onLimit });
      const held = `${marker}held`;
      // Killed in the first deciding call, or in whatever follows the tools of the second one.
      const heldAt = when === 'before' ? 0 : 1;
      stub.answer((request) => {
        if (!request.text.includes(marker)) return undefined;
        const step = request.assistantMessages;
        if (step >= 2) return reply.text('closing words');
        const delivery =
          step === heldAt && request.attempt === 1 ? { holdBeforeHeaders: held } : {};
        return { ...crashAnswer(request), delivery };
      });
      const first = await worker(env);
      const handle = await rig.client.workflow.start('agent', {
        taskQueue: env['QUEUE'] ?? '',
        workflowId: env['QUEUE'] ?? '',
        args: [{ agent: 'crash', message: marker }],
      });
      await stub.barrier(held).reached;
      await first.kill();
      const second = await workerHere(env);
      const ended = await rig.end(handle);
      await second.stop();
      expect(ended.outcome).toMatchObject({ ...outcome, steps: 2 });
      const bodies = stub.requests
        .filter(({ text }) => text.includes(marker))
        .map(({ text }) => text);
      expect(new Set(bodies).size).toBe(requests);
      expect(bodies.length).toBe(requests + 1);
    },
  );
});

describe('the worker that holds the workflow', () => {
  test('killed while its activity runs on another one: the result counts, nothing is repeated', async () => {
    const env = queueEnv();
    const marker = `elsewhere-${randomUUID()}`;
    stub.answer((request) => {
      if (!request.text.includes(marker)) return undefined;
      const held = request.assistantMessages === 2 && request.attempt === 1;
      return { ...crashAnswer(request), delivery: held ? { holdBeforeHeaders: marker } : {} };
    });
    const holder = await worker({ ...env, ROLE: 'workflows' });
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: env['QUEUE'] ?? '',
      workflowId: env['QUEUE'] ?? '',
      args: [{ agent: 'crash', message: marker }],
    });
    await worker({ ...env, ROLE: 'activities' });
    await stub.barrier(marker).reached;
    await holder.kill();
    await worker({ ...env, ROLE: 'workflows' });
    stub.barrier(marker).release();
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', steps: CRASH_STEPS + 1 });
    const bodies = stub.requests
      .filter(({ text }) => text.includes(marker))
      .map(({ text }) => text);
    expect(bodies).toHaveLength(CRASH_STEPS + 1);
  });
});

describe('the server', () => {
  test('killed and restarted on the same file during a run: the run continues and ends', async () => {
    const serverHome = await mkdtemp(join(tmpdir(), 'perdure-server-'));
    const server = await ensureServer({ home: serverHome, adoptDefault: false });
    const own = await createRig(server.address);
    const marker = `server-${randomUUID()}`;
    stub.answer((request) => {
      if (!request.text.includes(marker)) return undefined;
      const held = request.assistantMessages === 2 && request.attempt === 1;
      return { ...crashAnswer(request), delivery: held ? { holdBeforeHeaders: marker } : {} };
    });
    const env = queueEnv({ ADDRESS: server.address });
    await worker(env);
    await own.client.workflow.start('agent', {
      taskQueue: env['QUEUE'] ?? '',
      workflowId: marker,
      args: [{ agent: 'crash', message: marker }],
    });
    await stub.barrier(marker).reached;
    process.kill(server.pid ?? 0, 'SIGKILL');
    const again = await ensureServer({ home: serverHome, adoptDefault: false });
    expect(again).toMatchObject({ address: server.address, how: 'started' });
    stub.barrier(marker).release();
    const connection = await Connection.connect({ address: again.address });
    const { outcome } = await own.end(new Client({ connection }).workflow.getHandle(marker));
    expect(outcome).toMatchObject({ status: 'completed', steps: CRASH_STEPS + 1 });
    await connection.close();
    await own.close();
    await stopServer(serverHome);
    await rm(serverHome, { recursive: true, force: true });
  });
});
