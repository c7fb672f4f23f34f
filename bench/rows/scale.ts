import { randomUUID } from 'node:crypto';
import { startRun } from '../../src/updates/start.js';
import { openingMessage } from '../conversation.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import { idleMs } from '../kit/cpu.js';
import { openPlace, type Place } from '../kit/place.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const WHOLE = { runs: 20, steps: 25 };
const QUICK = { runs: 4, steps: 3 };
const WORKERS = [1, 2, 4];
const ROUNDS = { quick: 1, whole: 3 };

interface Load {
  readonly stepsPerSecond: number;
  /** CPU time of a step in ms, by part. `worker`: all worker processes together. */
  readonly cpu: Readonly<Record<string, number>>;
  /** Cores that had nothing to do. */
  readonly idleCores: number;
}

/**
 * Measures the same runs on one, two, and four worker processes. Wall time depends on what else the
 * machine does, and CPU time hardly, so the targets are about CPU time and about cores that nothing
 * else uses.
 */
export async function measureScale(bench: Bench): Promise<readonly Row[]> {
  const place = await openPlace(bench);
  const loads: (readonly [count: number, load: Load])[] = [];
  for (const count of WORKERS) {
    loads.push([count, middleOf(await measure(bench, place, count))]);
  }
  await place.close();
  const [first, ...others] = loads;
  if (first === undefined) return [];
  return [
    formulaRow(place, first, first[1]),
    ...others.flatMap((one) => [
      ...costRows(place, one, first[1]),
      formulaRow(place, one, first[1]),
    ]),
  ];
}

/** A capacity is computed from the CPU time of a step, so that must not grow with the workers. */
function costRows(place: Place, [count, load]: readonly [number, Load], one: Load): readonly Row[] {
  return Object.entries(load.cpu).map(([part, ms]) => ({
    name: `${place.rows}/${count}/${part}`,
    what: `CPU of the ${part} for a step, ${count} workers against one, ${place.database}`,
    value: ms / (one.cpu[part] ?? Number.NaN),
    unit: 'x',
    bar: { atMost: 1.15 },
    samples: [],
    detail: `${show(ms)} against ${show(one.cpu[part] ?? Number.NaN)} ms; ${rateOf(load)} against ${rateOf(one)}`,
  }));
}

/** The formula of docs/production.md, with the CPU time of a step that one worker had. */
function formulaRow(place: Place, [count, load]: readonly [number, Load], one: Load): Row {
  const { databaseCores } = place;
  const free = (coresOf(load) + load.idleCores) / secondsOf(one.cpu);
  const database = (databaseCores ?? Number.NaN) / ((one.cpu['database'] ?? Number.NaN) / 1_000);
  const expected = databaseCores === null ? free : Math.min(free, database);
  const workers = count === 1 ? 'one worker' : `${count} workers`;
  return {
    name: `${place.rows}/${count}/formula`,
    what: `steps per second against the formula of capacity, ${workers}, ${place.database}`,
    value: load.stepsPerSecond / expected,
    unit: 'x',
    bar: { between: [0.85, 1.15] },
    samples: [],
    detail: `${show(load.stepsPerSecond)} against ${show(expected)}; ${coresText(load)}`,
  };
}

function coresText(load: Load): string {
  const parts = Object.entries(load.cpu).map(
    ([part, ms]) => `${part} ${show((ms * load.stepsPerSecond) / 1_000)}`,
  );
  return `cores: ${parts.join(', ')}, idle ${show(load.idleCores)}`;
}

function rateOf(load: Load): string {
  return `${show(load.stepsPerSecond)} steps/s on ${show(coresOf(load))} cores`;
}

function coresOf({ stepsPerSecond, cpu }: Load): number {
  return stepsPerSecond * secondsOf(cpu);
}

function secondsOf(cpu: Load['cpu']): number {
  return sum(Object.values(cpu)) / 1_000;
}

async function measure(bench: Bench, place: Place, count: number): Promise<readonly Load[]> {
  const env = { ...place.env, QUEUE: `scale-${randomUUID()}` };
  const processes = await Promise.all(
    Array.from({ length: count }, () => bench.worker('perdure', env)),
  );
  await loaded(place, processes, QUICK);
  const loads: Load[] = [];
  const rounds = bench.quick ? ROUNDS.quick : ROUNDS.whole;
  for (let round = 0; round < rounds; round += 1) {
    loads.push(await loaded(place, processes, bench.quick ? QUICK : WHOLE));
  }
  await Promise.all(processes.map((one) => one.end()));
  return loads;
}

async function loaded(
  place: Place,
  processes: readonly BenchWorker[],
  { runs, steps }: typeof WHOLE,
): Promise<Load> {
  const message = openingMessage({ name: 'scale', steps, tools: ['work'], bytes: 500 });
  const taskQueue = processes[0]?.queue ?? '';
  const cpuNow = async (): Promise<Readonly<Record<string, number>>> => ({
    worker: sum((await Promise.all(processes.map((one) => one.reading()))).map((one) => one.cpuMs)),
    ...(await place.cpuMs()),
  });
  const before = await cpuNow();
  const idleBefore = await idleMs();
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: runs }, async () => {
      const at = { id: randomUUID(), taskQueue };
      const { id } = await startRun(place.client, { agent: 'scripted', message }, at);
      await place.client.workflow.getHandle(id).result();
    }),
  );
  const ms = performance.now() - begun;
  const idleCores = ((await idleMs()) - idleBefore) / ms;
  const cpu = Object.entries(await cpuNow()).map(([part, after]) => [
    part,
    (after - (before[part] ?? 0)) / runs / steps,
  ]);
  return { stepsPerSecond: (runs * steps * 1_000) / ms, cpu: Object.fromEntries(cpu), idleCores };
}

/** The medians of each figure. */
function middleOf(loads: readonly Load[]): Load {
  const parts = Object.keys(loads[0]?.cpu ?? {});
  const cpu = parts.map((part) => [
    part,
    median(loads.map((load) => load.cpu[part] ?? Number.NaN)),
  ]);
  return {
    stepsPerSecond: median(loads.map((load) => load.stepsPerSecond)),
    cpu: Object.fromEntries(cpu),
    idleCores: median(loads.map((load) => load.idleCores)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
