import { setTimeout as pause } from 'node:timers/promises';
import { eventsOf, startIdleRuns, type FirstTurn, type IdleSide } from '../idle/idle-runs.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import type { Row } from '../row.js';
import { slope, type Point } from '../statistics.js';
import { show } from '../table.js';

const IDLE_MS = 10_000;
const MEGABYTE = 1e6;

type Turn = Omit<FirstTurn, 'taskQueue'>;

/** A greeting and its answer. */
const EMPTY: Turn = { steps: 0, bytes: 100 };
/** 100 steps, the last of them the answer. By default, the run then continues in a new segment. */
const LONG: Turn = { steps: 99, bytes: 2_000 };
/** One step fewer: the largest size that a segment reaches. */
const FULL: Turn = { steps: 98, bytes: 2_000 };
/** A worker's memory for prompts is bounded, however many runs it has, so it is excluded here. */
const PROMPT_BYTES = 8 * 1024 * 1024;
const AT_ONCE = 10;
/** Fills the caches of a worker, and lets it optimize its code. */
const WARM_UP_RUNS = { quick: 20, whole: 40 };

interface Measured {
  /** x: runs, y: bytes that the worker holds. */
  readonly memory: readonly Point[];
  /** Events recorded while all runs were idle. */
  readonly events: number;
  /** Milliseconds of CPU time per second. */
  readonly cpu: { readonly without: number; readonly with: number };
}

/** Measures the cost of open runs while they wait for a message. */
export async function measureIdle(bench: Bench): Promise<readonly Row[]> {
  const counts = bench.quick ? [10, 20, 40] : [30, 60, 120];
  const empty = await measure(bench, EMPTY, bench.quick ? [25, 50, 100] : [100, 200, 400]);
  const long = await measure(bench, LONG, counts);
  const full = await measure(bench, FULL, counts);
  const bare = await measure(bench, FULL, counts, 'bare');
  const measured = [empty, long, full];
  return [
    memoryRow(empty, { name: 'idle/empty', what: 'after a turn of one reply', atMost: 0.4 }),
    memoryRow(long, { name: 'idle/steps', what: 'after 100 steps of 2 kB messages', atMost: 1 }),
    memoryRow(
      full,
      { name: 'idle/full', what: 'whose segment is full, after 99', atMost: 1 },
      bare,
    ),
    {
      name: 'idle/events',
      what: `events of all idle runs in ${IDLE_MS / 1_000} s`,
      value: measured.reduce((sum, { events }) => sum + events, 0),
      unit: 'events',
      bar: { atMost: 0 },
      samples: [],
      detail: `processor time of the worker: ${measured.map(showCpu).join('; ')}`,
    },
  ];
}

function memoryRow(
  { memory }: Measured,
  { atMost, ...named }: { name: string; what: string; atMost: number },
  bare?: Measured,
): Row {
  const held = memory.map(({ x, y }) => `${show(y / MEGABYTE)} with ${x}`);
  const beside =
    bare === undefined
      ? ''
      : `; ${show(slope(bare.memory) / MEGABYTE)} MB for each bare loop that keeps its messages`;
  return {
    name: named.name,
    what: `memory of a worker for an idle run ${named.what}`,
    value: slope(memory) / MEGABYTE,
    unit: 'MB',
    bar: { atMost },
    samples: [],
    detail: `MB held: ${held.join(', ')}${beside}`,
  };
}

function showCpu({ memory, cpu }: Measured): string {
  const runs = memory.at(-1)?.x ?? 0;
  return `${show(cpu.with)} ms/s with ${runs} runs, ${show(cpu.without)} with none`;
}

async function measure(
  bench: Bench,
  turn: Turn,
  counts: readonly number[],
  side: IdleSide = 'perdure',
): Promise<Measured> {
  const worker = await bench.worker(
    side,
    { SEGMENTS: 'default', PROMPT_BYTES: String(PROMPT_BYTES) },
    { collects: true },
  );
  const begin = async (count: number): Promise<readonly string[]> =>
    await startIdleRuns(
      bench.client,
      { ...turn, taskQueue: worker.queue },
      { count, atOnce: AT_ONCE, side },
    );
  const without = await idleCpu(worker);
  const warm = await begin(bench.quick ? WARM_UP_RUNS.quick : WARM_UP_RUNS.whole);
  const ids: string[] = [];
  const memory: Point[] = [];
  for (const count of counts) {
    ids.push(...(await begin(count - ids.length)));
    const { rssBytes } = await worker.collected();
    memory.push({ x: count, y: rssBytes });
  }
  const all = [...warm, ...ids];
  const before = await eventsOf(bench.client, all);
  const cpu = { without, with: await idleCpu(worker) };
  const after = await eventsOf(bench.client, all);
  await worker.end();
  return { memory, cpu, events: cameBetween(before, after) };
}

/** Milliseconds in a second. */
async function idleCpu(worker: BenchWorker): Promise<number> {
  const before = await worker.reading();
  // The elapsed time itself is measured; this does not wait for anything.
  await pause(IDLE_MS);
  const after = await worker.reading();
  return ((after.cpuMs - before.cpuMs) / (after.at - before.at)) * 1_000;
}

type Counted = Awaited<ReturnType<typeof eventsOf>>;

function cameBetween(before: Counted, after: Counted): number {
  return [...after].reduce((sum, [id, { runId, events }]) => {
    const earlier = before.get(id);
    return sum + events - (earlier?.runId === runId ? earlier.events : 0);
  }, 0);
}
