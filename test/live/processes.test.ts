import { randomUUID } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { announce, createWorkerFinder } from '../../src/live/worker-files.js';
import { reply } from '../../src/testing/steps.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { clientOf } from '../support/clerk.js';
import { createListener, listen } from '../support/listener.js';
import { portOf } from '../support/port-of.js';
import { createRig, type Rig } from '../support/rig.js';
import { openSse } from '../support/sse-reader.js';
import { workerChild, type WorkerChild } from '../support/worker-child.js';

let rig: Rig;
let client: PerdureClient;
let stub: Stub;
const workers: WorkerChild[] = [];

beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  client = await clientOf(rig);
});
afterAll(async () => {
  await Promise.all(workers.map((each) => each.kill()));
  await client.disconnect();
  await Promise.all([rig.close(), stub.close()]);
});

async function worker({
  files,
  baseUrl = stub.baseUrl,
}: { readonly files?: number; readonly baseUrl?: string } = {}): Promise<{
  readonly child: WorkerChild;
  readonly url: string;
}> {
  const env = {
    ADDRESS: inject('temporalAddress'),
    QUEUE: rig.taskQueue,
    OPENAI_BASE_URL: baseUrl,
    PERDURE_HOME: rig.home,
    LIVE: '1',
  };
  const child = await workerChild(env, files === undefined ? {} : { files });
  workers.push(child);
  const known = await createWorkerFinder(rig.home)();
  return { child, url: known.find(({ pid }) => pid === child.pid)?.url ?? '' };
}

/** More than one byte to a character, also where the stream is cut into pieces. */
const TEXT = 'Grüße an 🦊 und 狐: '.repeat(40);
const HALF = 60;

test(
  'a worker that is killed in the middle of a reply: whoever reads ends with the text of the transcript',
  { timeout: 120_000 },
  async () => {
    stub.answer((request) => {
      const sse = { charactersPerEvent: 5 };
      const barrier = request.attempt === 1 ? 'first' : 'second';
      return reply.text(TEXT, { sse, holdAfterEvent: { event: HALF, barrier } });
    });
    const first = await worker();
    const run = await client.start('crash', { message: 'talk', id: `killed-${randomUUID()}` });
    await stub.barrier('first').reached;
    const second = await worker();
    // One reads by the folder, one by a worker that has nothing to do with the call.
    const [here, there] = [createListener(), createListener()];
    const reading = listen(client.stream(run), here);
    const sse = await openSse(`${second.url}/runs/${run.id}/events`);
    const listening = listen(sse.events, there);
    const bothHave = async (count: number): Promise<void> => {
      const has = (): boolean => [here, there].every(({ spoken }) => spoken.length >= count);
      while (!has()) await pause(20);
    };
    await bothHave((HALF - 1) * 5);
    expect(TEXT.startsWith(here.spoken)).toBe(true);
    await first.child.kill();
    await stub.barrier('second').reached;
    // What the first attempt has said is taken back, and said again by the second.
    const isTakenBack = (): boolean =>
      [here, there].every(({ events }) => events.some(({ type }) => type === 'superseded'));
    while (!isTakenBack()) await pause(20);
    await bothHave((HALF - 1) * 5);
    stub.barrier('second').release();
    await Promise.all([reading, listening]);
    const { messages } = await client.transcript(run);
    for (const { heard, replies, events } of [here, there]) {
      expect(replies).toEqual([messages.at(-1)?.text]);
      expect(replies).toEqual([TEXT]);
      // What is durable may overtake the last words that come from another process.
      expect(TEXT.startsWith(heard[0] ?? '?')).toBe(true);
      expect(heard[0]?.length).toBeGreaterThanOrEqual((HALF - 1) * 5);
      expect(events.filter(({ type }) => type === 'superseded')).toMatchObject([
        { turn: 1, step: 1, attempt: 1 },
      ]);
      expect(events.some(({ type }) => type === 'gap')).toBe(false);
    }
    // What the killed worker left behind is taken away by whoever finds it.
    const known = await createWorkerFinder(rig.home)();
    expect(known.map(({ pid }) => pid)).toEqual([second.child.pid]);
    await second.child.kill();
  },
);

test(
  'a worker with 2,048 file descriptors finishes a run while 2,500 connections do nothing',
  { timeout: 120_000 },
  async () => {
    const plain = await startStub();
    plain.answer(() => reply.text('all the same'));
    const { child, url } = await worker({ files: 2_048, baseUrl: plain.baseUrl });
    const idle: Socket[] = [];
    const open = async (): Promise<unknown> => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      socket.on('error', () => undefined);
      idle.push(socket);
      return await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
    };
    // A few at a time: a system keeps only so many waiting to be accepted.
    while (idle.length < 2_500) await Promise.all(Array.from({ length: 250 }, open));
    const run = await client.start('crash', { message: 'in a crowd', id: `crowd-${randomUUID()}` });
    // Whoever does ask is served meanwhile.
    const sse = await openSse(`${url}/runs/${run.id}/events`);
    const listener = await listen(sse.events, createListener());
    expect(listener.replies).toEqual(['all the same']);
    expect(await client.result(run)).toMatchObject({ answer: 'all the same' });
    expect(() => process.kill(child.pid, 0)).not.toThrow();
    const held = await readdir(`/proc/${child.pid}/fd`).catch(() => []);
    expect(held.length).toBeLessThan(1_024);
    for (const socket of idle) socket.destroy();
    await child.kill();
    await plain.close();
  },
);

test('files that lead nowhere are passed over, and those of this machine taken away', async () => {
  const other = await createRig();
  const reader = await clientOf(other);
  const place = { token: '', namespace: 'default', taskQueue: other.taskQueue };
  const here = hostname();
  const nobody = `http://127.0.0.1:${await closedPort()}`;
  await announce(other.home, { ...place, url: nobody, pid: process.pid, host: here });
  await announce(other.home, { ...place, url: nobody, pid: 2 ** 22 + 1, host: here });
  await announce(other.home, { ...place, url: nobody, pid: 1, host: 'elsewhere' });
  await writeFile(join(other.home, 'live', 'odd.json'), '{"url":');
  const run = await reader.start('crash', { message: 'nobody', open: true });
  const over = new AbortController();
  const reading = listen(reader.stream(run, { signal: over.signal }), createListener());
  const files = (): Promise<string[]> => readdir(join(other.home, 'live'));
  while ((await files()).length > 2) await pause(20);
  const left = (await files()).map((name) => name.split('-')[0]);
  expect(new Set(left)).toEqual(new Set(['1', 'odd.json']));
  over.abort();
  await reading;
  await other.client.workflow.getHandle(run.id).terminate();
  await reader.disconnect();
  await other.close();
});

/** Where nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
