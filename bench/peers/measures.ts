import type { Script } from '../conversation.js';
import { actionsOf } from '../kit/actions.js';
import type { Bench } from '../kit/bench.js';
import { cpuMsOf } from '../kit/cpu.js';
import type { Figure } from '../report/results.js';
import type { Series } from '../row.js';
import { median } from '../statistics.js';
import { wholeHistory, type Side } from './sides.js';

export interface Sizes {
  readonly repeats: number;
  /** Steps of a run. */
  readonly steps: number;
  /** Lengths of the runs whose histories are measured. */
  readonly lengths: readonly number[];
}

export interface Part {
  readonly figures: readonly Figure[];
  readonly series: readonly Series[];
}

export async function run(bench: Bench, side: Side, script: Script): Promise<number> {
  const begun = performance.now();
  await bench.client.workflow.getHandle(await side.start(script)).result();
  return performance.now() - begun;
}

/** Milliseconds of a step of a run that is alone. */
export async function latency(bench: Bench, sides: readonly Side[], sizes: Sizes): Promise<Part> {
  const { repeats, steps } = sizes;
  const figures: Figure[] = [];
  const series: Series[] = [];
  for (const bytes of [500, 2_000]) {
    const script: Script = { name: `latency-${bytes}`, steps, tools: ['work'], bytes };
    const perStep = async (side: Side): Promise<number> => (await run(bench, side, script)) / steps;
    const samples = await interleaved(sides, repeats, perStep);
    sides.forEach(({ name: side }, at) => {
      const values = samples[at] ?? [];
      const value = median(values);
      const what = `a step, messages of ${bytes} B`;
      figures.push({ what, side, value, unit: 'ms', samples: values });
      if (bytes === 500) {
        series.push({ plot: 'throughput', side, points: [{ x: 1, y: 1_000 / value }] });
      }
    });
  }
  return { figures, series };
}

/** Steps per second, and CPU time per step, of many runs at once. */
export async function throughput(
  bench: Bench,
  sides: readonly Side[],
  sizes: Sizes,
): Promise<Part> {
  const figures: Figure[] = [];
  const series: Series[] = [];
  const { steps, repeats } = sizes;
  const script: Script = { name: 'throughput', steps, tools: ['work'], bytes: 500 };
  for (const runs of [10, 40]) {
    const cpu = new Map<string, { worker: number[]; server: number[] }>();
    const samples = await interleaved(sides, Math.ceil(repeats / 7), async (side) => {
      const spent = cpu.get(side.name) ?? { worker: [], server: [] };
      cpu.set(side.name, spent);
      const worker = (await side.worker.reading()).cpuMs;
      const server = await cpuMsOf(bench.server.pid);
      const begun = performance.now();
      await Promise.all(Array.from({ length: runs }, () => run(bench, side, script)));
      const ms = performance.now() - begun;
      spent.worker.push(((await side.worker.reading()).cpuMs - worker) / runs / steps);
      spent.server.push(((await cpuMsOf(bench.server.pid)) - server) / runs / steps);
      return (runs * steps * 1_000) / ms;
    });
    sides.forEach(({ name: side }, at) => {
      const values = samples[at] ?? [];
      const value = median(values);
      figures.push({
        what: `steps, ${runs} runs at once`,
        side,
        value,
        unit: 'per s',
        samples: values,
      });
      series.push({ plot: 'throughput', side, points: [{ x: runs, y: value }] });
      if (runs !== 10) return;
      for (const of of ['worker', 'server'] as const) {
        const times = cpu.get(side)?.[of] ?? [];
        const what = `CPU of the ${of} for a step, ${runs} runs at once`;
        figures.push({ what, side, value: median(times), unit: 'ms', samples: times });
      }
    });
  }
  return { figures, series };
}

/** Events, bytes, and billable actions; they do not depend on the machine. */
export async function histories(bench: Bench, sides: readonly Side[], sizes: Sizes): Promise<Part> {
  const figures: Figure[] = [];
  const series: Series[] = [];
  for (const steps of sizes.lengths) {
    for (const side of sides) {
      const script: Script = { name: `history-${steps}`, steps, tools: ['work'], bytes: 2_000 };
      const begun = performance.now();
      const id = await side.start(script);
      await bench.client.workflow.getHandle(id).result();
      const ms = performance.now() - begun;
      const { events, bytes } = await wholeHistory(bench, id);
      const of = { side: side.name, samples: [] };
      const at = `at ${steps} steps of 2 kB`;
      figures.push(
        { ...of, what: `history ${at}`, value: bytes / 1e6, unit: 'MB' },
        { ...of, what: `bytes of a step, ${at}`, value: bytes / steps, unit: 'bytes' },
        { ...of, what: `events of a step, ${at}`, value: events.length / steps, unit: '' },
        { ...of, what: `actions of a step, ${at}`, value: actionsOf(events) / steps, unit: '' },
      );
      const { name } = side;
      series.push(
        { plot: 'bytes', side: name, points: [{ x: steps, y: bytes / 1e6 }] },
        { plot: 'latency', side: name, points: [{ x: steps, y: ms / steps }] },
      );
    }
  }
  return { figures: figures.toSorted((a, b) => a.what.localeCompare(b.what)), series };
}

/** Samples by side: the sides take turns, so that other load on the machine affects all equally. */
async function interleaved(
  sides: readonly Side[],
  repeats: number,
  measure: (side: Side) => Promise<number>,
): Promise<readonly (readonly number[])[]> {
  // The first round warms up.
  for (const side of sides) await measure(side);
  const samples: number[][] = sides.map(() => []);
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    for (const [at, side] of sides.entries()) samples[at]?.push(await measure(side));
  }
  return samples;
}
