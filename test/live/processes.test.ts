import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { announce, createWorkerFinder, liveWorkers } from '../../src/live/live-workers.js';
import { replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { clientOf } from '../support/clerk.js';
import { createListener, listen } from '../support/listener.js';
import { portOf } from '../support/port-of.js';
import { createRig, type Rig } from '../support/rig.js';
import { openSse } from '../support/sse-reader.js';
import { workerChild, workerHere, type WorkerChild } from '../support/worker-child.js';

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
  const child = await workerChild(workerEnv(baseUrl), files === undefined ? {} : { files });
  workers.push(child);
  return { child, url: await urlOf(child.pid) };
}

const workerEnv = (baseUrl = stub.baseUrl) => ({
  ADDRESS: inject('temporalAddress'),
  QUEUE: rig.taskQueue,
  OPENAI_BASE_URL: baseUrl,
  PERDURE_HOME: rig.home,
  LIVE: '1',
});

/** Returns where the worker of a process serves live streams. */
async function urlOf(process: number): Promise<string> {
  const known = await createWorkerFinder(rig.home)();
  return known.find(({ pid }) => pid === process)?.url ?? '';
}

/** A text with characters of several bytes, so that chunks of the stream split some of them. */
const TEXT = 'Grüße an 🦊 und 狐: '.repeat(40);
const HALF = 60;

test(
  "readers end with the transcript's text if a worker is killed in the middle of a reply",
  { timeout: 120_000 },
  async () => {
    stub.answer((request) => {
      const sse = { charactersPerEvent: 5 };
      const barrier = request.attempt === 1 ? 'first' : 'second';
      return replyText(TEXT, { sse, holdAfterEvent: { event: HALF, barrier } });
    });
    const first = await worker();
    const run = await client.start('crash', { message: 'talk', id: `killed-${randomUUID()}` });
    await stub.barrier('first').reached;
    const second = await workerHere(workerEnv());
    // One reads through the folder, one through a worker that does not run the call.
    const [here, there] = [createListener(), createListener()];
    const reading = listen(client.stream(run), here);
    const sse = await openSse(`${await urlOf(process.pid)}/runs/${run.id}/events`);
    const listening = listen(sse.events, there);
    const bothHave = async (count: number): Promise<void> => {
      const has = (): boolean => [here, there].every(({ partial }) => partial.length >= count);
      while (!has()) await pause(20);
    };
    await bothHave((HALF - 1) * 5);
    expect(TEXT.startsWith(here.partial)).toBe(true);
    await first.child.kill();
    await stub.barrier('second').reached;
    // The deltas of the first attempt are taken back, and the second attempt sends its own.
    const isTakenBack = (): boolean =>
      [here, there].every(({ events }) => events.some(({ type }) => type === 'superseded'));
    while (!isTakenBack()) await pause(20);
    await bothHave((HALF - 1) * 5);
    stub.barrier('second').release();
    await Promise.all([reading, listening]);
    const { messages } = await client.transcript(run);
    for (const { streamed, replies, events } of [here, there]) {
      expect(replies).toEqual([messages.at(-1)?.text]);
      expect(replies).toEqual([TEXT]);
      // The durable reply may overtake the last deltas from another process.
      expect(TEXT.startsWith(streamed[0] ?? '?')).toBe(true);
      expect(streamed[0]?.length).toBeGreaterThanOrEqual((HALF - 1) * 5);
      expect(events.filter(({ type }) => type === 'superseded')).toMatchObject([
        { turn: 1, step: 1, attempt: 1 },
      ]);
      expect(events.some(({ type }) => type === 'gap')).toBe(false);
    }
    // The file that the killed worker left is removed by the first process that finds it.
    const known = await createWorkerFinder(rig.home)();
    expect(known.map(({ pid }) => pid)).toEqual([process.pid]);
    await second.stop();
  },
);

test(
  'a worker with 2,048 file descriptors finishes a run despite 2,500 idle connections',
  { timeout: 120_000 },
  async () => {
    const plain = await startStub();
    plain.answer(() => replyText('all the same'));
    const { child, url } = await worker({ files: 2_048, baseUrl: plain.baseUrl });
    const idle: Socket[] = [];
    const open = async (): Promise<unknown> => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      socket.on('error', () => undefined);
      idle.push(socket);
      return await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
    };
    // They connect a few at a time, because the system's backlog is limited.
    while (idle.length < 2_500) await Promise.all(Array.from({ length: 250 }, open));
    const run = await client.start('crash', { message: 'in a crowd', id: `crowd-${randomUUID()}` });
    // A client with a request is served meanwhile.
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

test('an event says once why deltas cannot reach a reader, and what to set', async () => {
  const far = await createRig();
  const model = await startStub();
  model.answer(() => replyText('at last', { holdAfterEvent: { event: 1, barrier: 'last' } }));
  const child = await workerChild({
    ADDRESS: inject('temporalAddress'),
    QUEUE: far.taskQueue,
    OPENAI_BASE_URL: model.baseUrl,
    PERDURE_HOME: `${far.home}-elsewhere`,
  });
  await using reader = await clientOf(far);
  const run = await reader.start('crash', { message: 'hi', id: `far-${randomUUID()}` });
  const notices: string[] = [];
  for await (const event of reader.stream(run)) {
    if (event.type !== 'deltas-unavailable') continue;
    notices.push(event.message);
    model.barrier('last').release();
  }
  expect(notices).toEqual([
    expect.stringContaining('none runs now, or it has another PERDURE_HOME'),
  ]);
  await child.kill();
  await Promise.all([far.close(), model.close()]);
});

test('files of dead workers are ignored, and those of this machine removed', async () => {
  const home = await mkdtemp(join(tmpdir(), 'perdure-live-'));
  const place = { token: '', namespace: 'default', taskQueue: rig.taskQueue };
  const here = hostname();
  const closedUrl = `http://127.0.0.1:${await closedPort()}`;
  await announce(home, { ...place, url: closedUrl, pid: process.pid, host: here });
  await announce(home, { ...place, url: closedUrl, pid: 2 ** 22 + 1, host: here });
  await announce(home, { ...place, url: closedUrl, pid: 1, host: 'elsewhere' });
  await writeFile(join(home, 'live', 'odd.json'), '{"url":');
  const over = new AbortController();
  const nothing = (): void => undefined;
  const to = { batch: nothing, unreachable: nothing, signal: over.signal };
  liveWorkers(home)({ id: 'run', taskQueue: rig.taskQueue, namespace: 'default' }, to);
  const files = (): Promise<string[]> => readdir(join(home, 'live'));
  while ((await files()).length > 2) await pause(20);
  const left = (await files()).map((name) => name.split('-')[0]);
  expect(new Set(left)).toEqual(new Set(['1', 'odd.json']));
  over.abort();
  await rm(home, { recursive: true });
});

/** Returns the address of a port where nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
