import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { ensureServer } from '../../src/server/ensure-server.js';
import { processLife } from '../../src/server/processes.js';
import { replyText, withDelivery } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { CRASH_STEPS, crashAnswer } from '../support/crash-agent.js';
import { killTogether } from '../support/kill-together.js';
import { startLedger, type Ledger } from '../support/ledger.js';
import { createRig, type Ended, type Rig } from '../support/rig.js';
import { serverHomes } from '../support/server-homes.js';
import { expectDelivered } from '../support/delivered.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

/** How the agent ends at its cap, and where its worker is killed. */
const CAPS = [
  ['answer', 'before', { status: 'stopped', reason: 'steps', answer: 'closing words' }, 3],
  ['answer', 'after', { status: 'stopped', reason: 'steps', answer: 'closing words' }, 3],
  ['compose', 'after', { status: 'stopped', reason: 'steps' }, 2],
  ['fail', 'after', { status: 'failed', reason: 'limit', limit: 'steps', answer: null }, 2],
] as const;
const idOf = (onLimit: string, when: string): string => `cap-${onLimit}-${when}-${SUFFIX}`;
const SUFFIX = randomUUID();

const { freshHome } = serverHomes();

let rig: Rig;
let home: string;
let stub: Stub;
let ledger: Ledger;
const children: WorkerChild[] = [];

beforeAll(async () => {
  [rig, stub, ledger] = [await createRig(), await startStub(), await startLedger()];
  home = await mkdtemp(join(tmpdir(), 'perdure-crash-'));
});
afterAll(async () => {
  await Promise.all(children.map((each) => each.kill()));
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

const bodiesOf = (marker: string): readonly string[] =>
  stub.requests.flatMap(({ text }) => (text.includes(marker) ? [text] : []));

describe('a step cap reached around a crash', () => {
  const ends = new Map<string, Ended>();
  beforeAll(async () => {
    for (const [onLimit, when] of CAPS) {
      const id = idOf(onLimit, when);
      // Killed in the first deciding call, or in whatever follows the second one's tools.
      const heldAt = when === 'before' ? 0 : 1;
      stub.answer((request) => {
        if (!request.text.includes(id)) return undefined;
        const step = request.assistantMessages;
        if (step >= 2) return replyText('closing words');
        const delivery = step === heldAt && request.attempt === 1 ? { holdBeforeHeaders: id } : {};
        return withDelivery(crashAnswer(request), delivery);
      });
    }
    const { handles, stop } = await killTogether(rig.client, {
      env: queueEnv(),
      runs: CAPS.map(([onLimit, when]) => {
        const id = idOf(onLimit, when);
        const input = { agent: `capped-${onLimit}`, message: id };
        return { id, input, held: () => stub.barrier(id).reached };
      }),
    });
    const all = await Promise.all(handles.map((handle) => rig.end(handle)));
    for (const ended of all) ends.set(ended.handle.workflowId, ended);
    await stop();
  });

  test.each(CAPS)(
    'counts once with onLimit %s, killed %s the cap',
    (onLimit, when, outcome, requests) => {
      const id = idOf(onLimit, when);
      expect(ends.get(id)?.outcome).toMatchObject({ ...outcome, steps: 2 });
      const bodies = bodiesOf(id);
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
      return withDelivery(crashAnswer(request), held ? { holdBeforeHeaders: marker } : {});
    });
    const holder = await workerChild({ ...env, ROLE: 'workflows' });
    children.push(holder);
    const handle = await rig.client.workflow.start('agent', {
      taskQueue: env['QUEUE'] ?? '',
      workflowId: env['QUEUE'] ?? '',
      args: [{ agent: 'crash', message: marker }],
    });
    const hands = await workerHere({ ...env, ROLE: 'activities' });
    await stub.barrier(marker).reached;
    await holder.kill();
    const next = await workerHere({ ...env, ROLE: 'workflows' });
    stub.barrier(marker).release();
    const { outcome } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', steps: CRASH_STEPS + 1 });
    expect(bodiesOf(marker)).toHaveLength(CRASH_STEPS + 1);
    await Promise.all([hands.stop(), next.stop()]);
  });
});

describe('the server', () => {
  test('killed and restarted on the same file in mid-run: the run continues and ends, and a message to a run without a worker is one turn', async () => {
    const serverHome = await freshHome();
    const server = await ensureServer({ home: serverHome, adoptDefault: false });
    const { address } = server;
    const own = await createRig(address);
    const client = await clientOf(own, { address });
    const marker = `server-${randomUUID()}`;
    stub.answer((request) => {
      if (!request.text.includes(marker)) return undefined;
      const held = request.assistantMessages === 2 && request.attempt === 1;
      return withDelivery(crashAnswer(request), held ? { holdBeforeHeaders: marker } : {});
    });
    const env = queueEnv({ ADDRESS: address });
    const worker = await workerHere(env);
    const handle = await own.client.workflow.start('agent', {
      taskQueue: env['QUEUE'] ?? '',
      workflowId: marker,
      args: [{ agent: 'crash', message: marker }],
    });
    await stub.barrier(marker).reached;
    const id = `dead-${randomUUID()}`;
    const hello = { message: 'hello', id: 'm-1' };
    const sent = await client.send(id, hello, { start: { agent: 'clerk' } });
    expect(sent).toEqual({ delivered: false, messageId: 'm-1' });

    const pid = server.pid ?? 0;
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => processLife(pid), { interval: 10, timeout: 20_000 }).toBeNull();
    const again = await ensureServer({ home: serverHome, adoptDefault: false });
    expect(again).toMatchObject({ address, how: 'started' });
    stub.barrier(marker).release();
    const { outcome } = await own.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', steps: CRASH_STEPS + 1 });

    await own.worker([clerk()], { models: { m: obedientModel() } });
    expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'done: hello' });
    expect(await expectDelivered(client.send(id, hello))).toMatchObject({
      turn: 1,
      duplicate: true,
    });
    await client.close(id);
    const ended = own.client.workflow.getHandle(id).result();
    expect(await ended).toMatchObject({ reason: 'closed', steps: 1 });
    await client.disconnect();
    await worker.stop();
    await own.close();
  }, 120_000);
});
