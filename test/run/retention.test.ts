import { randomUUID } from 'node:crypto';
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import type { BlobErasure } from '../../src/storage/blob-store.js';
import { eraseRuns } from '../../src/client/erasure/erase-runs.js';
import { newErasureName, readRecords, writeRecord } from '../../src/storage/erasure-log.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { perdurePlugin } from '../../src/worker/plugin.js';
import { type Later, eraseOld, startRetention } from '../../src/worker/retention.js';
import { sourceBundle } from '../support/bundle.js';
import { ownCaller } from '../support/own-caller.js';
import {
  type ErasingRig,
  createErasingRig,
  erasableStores,
  load,
  models,
} from '../support/erasing-rig.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const common = { instructions: 'Load what is asked for.', model: 'm', tools: [load] };
const other = defineAgent({ ...common, name: 'other' });

/** `keep`: whether their runs have a retention. */
function agentsThat(keep: boolean): readonly Agent[] {
  const short = keep ? ({ retention: '1 hour' } as const) : {};
  const long = keep ? ({ retention: '30 days' } as const) : {};
  const helper = defineAgent({ ...common, ...short, name: 'helper', description: 'Helps.' });
  return [
    defineAgent({ ...common, ...short, name: 'desk', agents: [helper] }),
    helper,
    defineAgent({ ...common, ...long, name: 'clerk' }),
    other,
  ];
}
const agents = agentsThat(true);
const BY = expect.stringMatching(/^retention of agent desk on erase-/);

let rig: ErasingRig;
let stores: ReturnType<typeof erasableStores> & {
  readonly agents: readonly Agent[];
  readonly taskQueue: string;
  readonly build: null;
};

beforeAll(async () => {
  rig = await createErasingRig(agentsThat(false));
  const { taskQueue } = rig;
  stores = { agents, ...erasableStores(rig), taskQueue, build: null };
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});
afterAll(async () => await rig?.end());

/** Returns the id of the run that a run has called. */
async function calledBy(root: string): Promise<string> {
  const [row] = (await rig.client.list({ root })).rows;
  if (row === undefined) throw new Error('no agent was called');
  return row.id;
}

/** Returns who has erased runs, and when that has ended. */
async function doneBy() {
  const { records } = await readRecords(stores.erasure, 'default');
  return records.flatMap(({ runs, by, endedAt }) => (runs.length > 0 ? [[by, endedAt]] : []));
}

/** Lets a worker look, at this time. */
async function look(now: number): Promise<void> {
  await eraseOld({ ...stores, signal: new AbortController().signal }, rig.raw, now);
}

function watchLog() {
  const { logger } = Runtime.instance();
  return vi.spyOn(logger, 'warn').mockImplementation(() => undefined);
}

test('what is older than the retention of its agent is erased, and nothing else', async () => {
  const [word, theirs] = [`cnry-${randomUUID()}`, `cnry-${randomUUID()}`];
  const old = await rig.play({ word, how: 'help' });
  const called = await calledBy(old);
  const open = await rig.play({ word: theirs, how: 'help', end: false });
  const ofOpen = await calledBy(open);
  const others = [
    await rig.play({ word: theirs, agent: 'clerk' }),
    await rig.play({ word: theirs, agent: 'other' }),
  ];
  const cut = Date.now();
  const young = await rig.play({ word: theirs });
  const warn = watchLog();

  await look(cut + HOUR_MS);
  const stay = [open, ofOpen, ...others, young];
  expect(await rig.onServer(old, called, ...stay)).toEqual(stay);
  // Its texts are younger than a day.
  expect(await rig.filesWith(word)).not.toEqual([]);
  expect(await doneBy()).toEqual([[BY, null]]);

  await look(cut + 2 * DAY_MS);
  expect(await rig.onServer(...stay)).toEqual([open, ofOpen, ...others]);
  expect(await rig.filesWith(word)).toEqual([]);
  const ended = [BY, expect.any(String)];
  expect(await doneBy()).toEqual([ended, ended]);
  expect(warn).not.toHaveBeenCalled();

  await rig.close(open);
  await look(Date.now() + 3 * DAY_MS);
  expect(await rig.onServer(open, ofOpen, ...others)).toEqual(others);
});

test('an id that several runs have used stays, and so do runs of another task queue or while another build is current', async () => {
  const id = `nightly-${randomUUID()}`;
  const start = async () =>
    await rig.client.start('desk', { id, reuseId: true, message: 'load it' });
  await rig.client.result(await start());
  await rig.client.result(await start());
  const old = await rig.play({ word: 'it' });
  const warn = watchLog();
  const now = Date.now() + 5 * DAY_MS;
  const { signal } = new AbortController();
  await eraseOld({ ...stores, taskQueue: 'of-others', signal }, rig.raw, now);
  const build = { deploymentName: 'desk', buildId: 'before' };
  await eraseOld({ ...stores, build, signal }, rig.raw, now);
  expect(await rig.onServer(old)).toEqual([old]);
  await look(now);
  expect(await rig.onServer(old, id)).toEqual([id]);
  expect(warn.mock.calls.map(([text]) => text)).toEqual([
    expect.stringContaining(`run ${id}: its id was used for several runs`),
  ]);
  const { removed } = await eraseRuns(rig.client, { runs: [id], by: 'ann' });
  expect(removed.histories).toBe(2);
});

test('an agent whose erasure fails does not stop the others', async () => {
  const old = await rig.play({ word: 'it' });
  const warn = watchLog();
  const now = Date.now() + 7 * DAY_MS;
  // An agent without runs comes first.
  const first = { name: 'clerk', retentionMs: Number.NaN };
  const { signal } = new AbortController();
  await eraseOld({ ...stores, agents: [first, ...agents], signal }, rig.raw, now);
  expect(await rig.onServer(old)).toEqual([]);
  expect(warn).toHaveBeenCalledTimes(1);
});

describe('several workers', () => {
  test('that look at the same time do no harm, and those that follow leave the agent to them', async () => {
    const word = `cnry-${randomUUID()}`;
    const old = await rig.play({ word, how: 'help' });
    const warn = watchLog();
    const now = Date.now() + 10 * DAY_MS;
    await Promise.all([look(now), look(now)]);
    expect(await rig.onServer(old)).toEqual([]);
    expect(await rig.filesWith(word)).toEqual([]);

    const next = await rig.play({ word });
    await look(now + HOUR_MS / 4);
    expect(await rig.onServer(next)).toEqual([next]);
    await look(now + HOUR_MS);
    expect(await rig.onServer(next)).toEqual([]);
    expect(warn).not.toHaveBeenCalled();
  });

  test('do not look again where another one has found nothing', async () => {
    const all = vi.spyOn(stores.erasure, 'all');
    // Each agent with a retention reads the archive once.
    const read = () => all.mock.calls.filter(([namespace]) => namespace !== null).length;
    const now = Date.now() + 15 * DAY_MS;
    await look(now);
    expect(read()).toBe(3);
    await look(now + HOUR_MS / 4);
    expect(read()).toBe(3);
    await look(now + HOUR_MS);
    expect(read()).toBe(6);
  });

  test('leave all agents to one that is at work, and continue what one has left for long', async () => {
    const old = await rig.play({ word: 'it' });
    const now = Date.now() + 20 * DAY_MS;
    const counts = { histories: 0, archived: 0, blobs: 0 };
    await writeRecord(stores.erasure, {
      version: 1,
      erasure: newErasureName(now),
      namespace: 'default',
      by: `retention of agent clerk on ${rig.taskQueue}`,
      startedAt: new Date(now).toISOString(),
      endedAt: null,
      runs: [],
      blobs: [],
      planned: counts,
      removed: null,
      left: 0,
    });
    await look(now + HOUR_MS / 4);
    expect(await rig.onServer(old)).toEqual([old]);
    await look(now + HOUR_MS);
    expect(await rig.onServer(old)).toEqual([]);
    const { records } = await readRecords(stores.erasure, 'default');
    expect(records.filter(({ endedAt }) => endedAt === null)).toEqual([]);
  });
});

describe('a worker', () => {
  test.each([
    [
      'of createWorker',
      100 * DAY_MS,
      async () => {
        const own = await createWorker({
          config: defineConfig({ agents, models }),
          address: rig.address,
          taskQueue: rig.taskQueue,
          env: rig.env,
          workflowBundle: await sourceBundle(),
          shutdownGrace: 200,
        });
        return () => own.shutdown();
      },
    ],
    [
      'with perdurePlugin',
      101 * DAY_MS,
      async () => {
        const native = await NativeConnection.connect({ address: rig.address });
        const own = await Worker.create({
          connection: native,
          taskQueue: rig.taskQueue,
          workflowBundle: await sourceBundle(),
          plugins: [perdurePlugin({ agents, models, env: rig.env })],
        });
        const ended = own.run();
        return async () => {
          own.shutdown();
          await ended;
          await native.close();
        };
      },
    ],
  ])(
    '%s erases soon after its start, and says nothing when it ends',
    async (_how, shift, start) => {
      const old = await rig.play({ word: 'it' });
      const warn = watchLog();
      vi.spyOn(Math, 'random').mockReturnValue(0);
      const { now } = Date;
      vi.spyOn(Date, 'now').mockImplementation(() => now() + shift);
      const stop = await start();
      try {
        await expect.poll(async () => await rig.onServer(old), { timeout: 30_000 }).toEqual([]);
      } finally {
        await stop();
      }
      expect(warn).not.toHaveBeenCalled();
    },
  );

  test('that ends in the middle of an erasure logs no failure, and the next one completes it', async () => {
    const word = `cnry-${randomUUID()}`;
    const old = await rig.play({ word });
    const warn = watchLog();
    const ending = new AbortController();
    const { erasure } = stores.blobs;
    if (erasure === undefined) throw new Error('the blob store has no erasure');
    const remove: BlobErasure['remove'] = async (ref, before) => {
      ending.abort();
      return await erasure.remove(ref, before);
    };
    const blobs = { ...stores.blobs, erasure: { ...erasure, remove } };
    const now = Date.now() + 110 * DAY_MS;
    await eraseOld({ ...stores, blobs, signal: ending.signal }, rig.raw, now);
    expect(await rig.onServer(old)).toEqual([old]);
    expect(await rig.filesWith(word)).not.toEqual([]);
    await look(now + HOUR_MS);
    expect(await rig.onServer(old)).toEqual([]);
    expect(await rig.filesWith(word)).toEqual([]);
    expect(warn).not.toHaveBeenCalled();
  });

  test('says once if a store has no `erasure`, and erases nothing', () => {
    const warn = watchLog();
    const { signal } = new AbortController();
    const timers = vi.fn<Later>();
    const { archive, blobs } = stores;
    const { erasure: _, ...bare } = archive;
    startRetention({ ...stores, archive: bare, signal }, () => rig.raw, timers);
    const { erasure: _none, ...plain } = blobs;
    startRetention({ ...stores, blobs: plain, signal }, () => rig.raw, timers);
    startRetention({ ...stores, agents: [other], archive: bare, signal }, () => rig.raw, timers);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      '`retention` of agents erases nothing: the archive has no `erasure`',
      '`retention` of agents erases nothing: the blob store has no `erasure`',
    ]);
    expect(timers).not.toHaveBeenCalled();
  });

  test('tries again in an hour after a failure, keeps no process alive, and ends with its signal', async () => {
    const ended = new AbortController();
    // Lists what keeps the process alive.
    const before = process.getActiveResourcesInfo();
    startRetention({ ...stores, signal: ended.signal }, () => rig.raw);
    expect(process.getActiveResourcesInfo()).toEqual(before);
    ended.abort();

    const waiting: { work: () => void; ms: number; isOver: boolean }[] = [];
    const doLater: Later = (work, ms) => {
      const timer = { work, ms, isOver: false };
      waiting.push(timer);
      return () => void (timer.isOver = true);
    };
    const warn = watchLog();
    const over = new AbortController();
    const records = async () => await Promise.reject(new Error('the disk is gone'));
    const broken = { ...stores.archive, erasure: { ...stores.erasure, records } };
    startRetention({ ...stores, archive: broken, signal: over.signal }, () => rig.raw, doLater);
    const [first] = waiting;
    expect(first?.ms).toBeLessThanOrEqual(60_000);
    first?.work();
    await vi.waitFor(() => expect(waiting).toHaveLength(2));
    expect(warn.mock.calls[0]?.[0]).toMatch(/tried again in an hour: the disk is gone$/);
    const [, second] = waiting;
    expect(Math.abs((second?.ms ?? 0) - HOUR_MS)).toBeLessThanOrEqual(0.1 * HOUR_MS);
    second?.work();
    await vi.waitFor(() => expect(waiting).toHaveLength(3));
    expect(warn).toHaveBeenCalledTimes(2);
    over.abort();
    expect(waiting.map(({ isOver }) => isOver)).toEqual([false, false, true]);
  });
});

test('runs that a workflow of your own has started are erased as well, on the server and in the archive', async () => {
  const word = `cnry-${randomUUID()}`;
  const input = { agent: 'desk', message: `load ${word}`, archive: true };
  const { runs } = await ownCaller({ ...rig, client: rig.raw }, input);
  expect(await rig.onServer(...runs)).toEqual(runs);
  const [first = '', second = ''] = runs;
  // The server deletes one of them, as by the retention of the namespace.
  await rig.raw.workflowService.deleteWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: first },
  });
  await expect.poll(async () => await rig.onServer(...runs)).toEqual([second]);
  await look(Date.now() + 30 * DAY_MS);
  expect(await rig.onServer(...runs)).toEqual([]);
  expect(await rig.filesWith(word)).toEqual([]);
});
