import { randomUUID } from 'node:crypto';
import { startRun } from '../../src/updates/start.js';
import { openingMessage } from '../conversation.js';
import { startIdleRuns } from '../idle/idle-runs.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import { inParallel } from '../kit/in-parallel.js';
import type { Row } from '../row.js';
import { show } from '../table.js';

const MEGABYTE = 1e6;
const AT_ONCE = 10;
const STEPS = 25;
const OPEN_RUNS = { quick: 20, whole: 1_000 };

/** What a worker holds after its garbage is collected. */
interface Held {
  /** Steps, or open runs. */
  readonly count: number;
  readonly rssBytes: number;
  /** Of the main thread. */
  readonly heapBytes: number;
}

/** Measures a worker's memory over many steps of runs that end, and with many open runs. */
export async function measureWorkerMemory(bench: Bench): Promise<readonly Row[]> {
  return [await overSteps(bench), await withOpenRuns(bench)];
}

/** WORKER_STEPS, such as `1000,5000`, replaces the counts of steps. */
function stepCounts({ quick }: Bench): readonly number[] {
  const given = process.env['WORKER_STEPS'];
  if (given !== undefined) return given.split(',').map(Number);
  return quick ? [100, 200] : [1_000, 5_000, 10_000];
}

async function overSteps(bench: Bench): Promise<Row> {
  const worker = await bench.worker('perdure', { SEGMENTS: 'default' }, { collects: true });
  const held: Held[] = [];
  let done = 0;
  for (const count of stepCounts(bench)) {
    const missing = Math.ceil((count - done) / STEPS);
    await inParallel(Array.from({ length: missing }), { atOnce: AT_ONCE }, () =>
      runOnce(bench, worker),
    );
    done += missing * STEPS;
    held.push(await heldBy(worker, done));
  }
  await worker.end();
  const [first, last] = [held.at(0), held.at(-1)];
  return {
    name: 'worker-memory/steps',
    what: `RSS of a worker after ${last?.count} steps against ${first?.count}, in runs of ${STEPS} steps`,
    value: (last?.rssBytes ?? Number.NaN) / (first?.rssBytes ?? Number.NaN),
    unit: 'x',
    bar: { atMost: 1.25 },
    samples: [],
    detail: described(held),
  };
}

async function runOnce({ client }: Bench, { queue }: BenchWorker): Promise<void> {
  const message = openingMessage({ name: 'memory', steps: STEPS, tools: ['work'], bytes: 2_000 });
  const place = { id: randomUUID(), taskQueue: queue };
  const { id } = await startRun(client, { agent: 'scripted', message }, place);
  await client.workflow.getHandle(id).result();
}

async function withOpenRuns(bench: Bench): Promise<Row> {
  const count = bench.quick ? OPEN_RUNS.quick : OPEN_RUNS.whole;
  const worker = await bench.worker('perdure', { SEGMENTS: 'default' }, { collects: true });
  const before = await heldBy(worker, 0);
  const turn = { steps: 0, bytes: 100, taskQueue: worker.queue };
  await startIdleRuns(bench.client, turn, { count, atOnce: AT_ONCE });
  const after = await heldBy(worker, count);
  await worker.end();
  return {
    name: 'worker-memory/open',
    what: `RSS of a worker with ${count} open runs of one reply, as many in memory as by default`,
    value: after.rssBytes / MEGABYTE,
    unit: 'MB',
    bar: { atMost: 1_000 },
    samples: [],
    detail: described([before, after]),
  };
}

async function heldBy(worker: BenchWorker, count: number): Promise<Held> {
  const { rssBytes, heapBytes } = await worker.collected();
  return { count, rssBytes, heapBytes };
}

function described(held: readonly Held[]): string {
  const inMb = (bytes: number): string => show(bytes / MEGABYTE);
  const parts = held.map(
    ({ count, rssBytes, heapBytes }) => `${inMb(rssBytes)} with ${count} (heap ${inMb(heapBytes)})`,
  );
  return `MB of RSS: ${parts.join(', ')}; heap of the main thread`;
}
