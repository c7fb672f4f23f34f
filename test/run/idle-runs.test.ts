import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startChild, type Child } from '../../bench/kit/child.js';
import { eventsOf, startIdleRuns } from '../../bench/idle/idle-runs.js';
import { slope, type Point } from '../../bench/statistics.js';
import { sourceBundle } from '../support/bundle.js';
import { childScript } from '../support/child-script.js';
import { ask, outcomeOf } from '../support/conversation.js';
import { createRig, type Rig } from '../support/rig.js';

/** PERDURE_IDLE_RUNS=2000 takes one to three minutes longer on two cores. */
const RUNS = Number(process.env['PERDURE_IDLE_RUNS'] ?? 60);
const WOKEN = Math.min(100, RUNS / 4);
const AT_ONCE = 40;
/**
 * Several times the measured value (0.2 MB); a heap or a bundle for each run would far exceed it.
 */
const MAX_BYTES = 1e6;

let rig: Rig;
let home: string;
let worker: Child;
const queue = `idle-${randomUUID()}`;

beforeAll(async () => {
  rig = await createRig();
  home = await mkdtemp(join(tmpdir(), 'perdure-idle-'));
  const bundle = await sourceBundle();
  const BUNDLE = join(home, 'workflows.js');
  await writeFile(BUNDLE, 'code' in bundle ? bundle.code : '');
  const script = childScript(new URL('../../bench/subject/worker.ts', import.meta.url));
  worker = await startChild(pathToFileURL(script.at(-1) ?? ''), {
    env: {
      ADDRESS: inject('temporalAddress'),
      QUEUE: queue,
      BUNDLE,
      PERDURE_HOME: home,
      CACHED: String(RUNS + 100),
    },
    collects: true,
  });
});
afterAll(async () => {
  // The runs are compared with their readers while their worker still answers.
  await rig.close();
  await worker.kill();
  await rm(home, { recursive: true, force: true });
});

test(`${RUNS} open runs wait on one worker with little memory and no events, and ${WOKEN} of them answer at once`, async () => {
  const turn = { taskQueue: queue, steps: 0, bytes: 100 };
  const ids: string[] = [];
  const memory: Point[] = [];
  for (const share of [0.25, 0.5, 0.75, 1]) {
    const count = Math.round(RUNS * share) - ids.length;
    ids.push(...(await startIdleRuns(rig.client, turn, { count, atOnce: AT_ONCE })));
    const { rssBytes } = await worker.collected();
    memory.push({ x: ids.length, y: rssBytes });
  }
  expect(slope(memory)).toBeLessThan(MAX_BYTES);

  const [woken, idle] = [ids.slice(0, WOKEN), ids.slice(WOKEN)];
  const before = await eventsOf(rig.client, idle);
  const answers = await Promise.all(
    woken.map(async (id) => {
      const handle = rig.client.workflow.getHandle(id);
      const { turn: next } = await ask(handle, 'and now?');
      return { id, turn: next, outcome: await outcomeOf(handle, next) };
    }),
  );
  for (const { id, turn: next, outcome } of answers) {
    expect(next).toBe(2);
    expect(outcome).toMatchObject({ status: 'completed' });
    expect('answer' in outcome && outcome.answer).toContain(`<${id} reply 1>`);
  }
  expect(await eventsOf(rig.client, idle)).toEqual(before);
}, 900_000);
