import { randomUUID } from 'node:crypto';
import { startRun } from '../../src/updates/start.js';
import { openingMessage } from '../conversation.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import type { Row } from '../row.js';
import { cpuMsOf } from '../kit/cpu.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const WHOLE = { runs: 20, steps: 25 };
const QUICK = { runs: 4, steps: 3 };
const WORKERS = [1, 2, 4];

/** What a load has taken, by part, in ms of CPU for each step. */
interface Load {
  readonly stepsPerSecond: number;
  /** `worker`: all worker processes together. */
  readonly cpu: Readonly<Record<string, number>>;
}

/**
 * Measures the same runs on one, two, and four worker processes. Wall time depends on what else the
 * machine does, and CPU time hardly, so the targets are about CPU time.
 */
export async function measureScale(bench: Bench): Promise<readonly Row[]> {
  const loads = new Map<number, readonly Load[]>();
  for (const count of WORKERS) loads.set(count, await measure(bench, count));
  const one = middleOf(loads.get(1) ?? []);
  return WORKERS.slice(1).flatMap((count) => rowsOf(count, middleOf(loads.get(count) ?? []), one));
}

/** A capacity is computed from the CPU time of a step, so that must not grow with the workers. */
function rowsOf(count: number, load: Load, one: Load): readonly Row[] {
  return Object.entries(load.cpu).map(([part, ms]) => ({
    name: `scale/${count}/${part}`,
    what: `CPU of the ${part} for a step, ${count} workers against one`,
    value: ms / (one.cpu[part] ?? Number.NaN),
    unit: 'x',
    bar: { atMost: 1.15 },
    samples: [],
    detail: `${show(ms)} against ${show(one.cpu[part] ?? Number.NaN)} ms; ${rateOf(load)} against ${rateOf(one)}`,
  }));
}

function rateOf({ stepsPerSecond, cpu }: Load): string {
  const cores = (stepsPerSecond * sum(Object.values(cpu))) / 1_000;
  return `${show(stepsPerSecond)} steps/s on ${show(cores)} cores`;
}
async function measure(bench: Bench, count: number): Promise<readonly Load[]> {
  const first = await bench.worker('perdure');
  const env = { QUEUE: first.queue };
  const others = Array.from({ length: count - 1 }, () => bench.worker('perdure', env));
  const processes = [first, ...(await Promise.all(others))];
  await loaded(bench, processes, QUICK);
  const loads: Load[] = [];
  for (let round = 0; round < (bench.quick ? 1 : 2); round += 1) {
    loads.push(await loaded(bench, processes, bench.quick ? QUICK : WHOLE));
  }
  await Promise.all(processes.map((one) => one.end()));
  return loads;
}

async function loaded(
  bench: Bench,
  processes: readonly BenchWorker[],
  { runs, steps }: typeof WHOLE,
): Promise<Load> {
  const message = openingMessage({ name: 'scale', steps, tools: ['work'], bytes: 500 });
  const taskQueue = processes[0]?.queue ?? '';
  const before = await cpuNow(bench, processes);
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: runs }, async () => {
      const at = { id: randomUUID(), taskQueue };
      const { id } = await startRun(bench.client, { agent: 'scripted', message }, at);
      await bench.client.workflow.getHandle(id).result();
    }),
  );
  const seconds = (performance.now() - begun) / 1_000;
  const after = await cpuNow(bench, processes);
  const cpu = Object.entries(after).map(([part, ms]) => [
    part,
    (ms - (before[part] ?? 0)) / runs / steps,
  ]);
  return { stepsPerSecond: (runs * steps) / seconds, cpu: Object.fromEntries(cpu) };
}

async function cpuNow(
  bench: Bench,
  processes: readonly BenchWorker[],
): Promise<Readonly<Record<string, number>>> {
  const readings = await Promise.all(processes.map((one) => one.reading()));
  return {
    worker: sum(readings.map(({ cpuMs }) => cpuMs)),
    server: await cpuMsOf(bench.server.pid),
  };
}

/** The medians of each figure. */
function middleOf(loads: readonly Load[]): Load {
  const parts = Object.keys(loads[0]?.cpu ?? {});
  const cpu = parts.map((part) => [
    part,
    median(loads.map((load) => load.cpu[part] ?? Number.NaN)),
  ]);
  return {
    stepsPerSecond: median(loads.map(({ stepsPerSecond }) => stepsPerSecond)),
    cpu: Object.fromEntries(cpu),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
