import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import { MODELS, startPair, type ModelKind, type Pair } from '../kit/pair.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const STEPS = 25;
const QUICK_STEPS = 3;

/** Measures the steps per second of many concurrent runs. */
export async function measureThroughput(bench: Bench): Promise<readonly Row[]> {
  const pair = await startPair(bench);
  const rows: Row[] = [];
  for (const model of MODELS) {
    for (const runs of [10, 40]) rows.push(await measure(bench, pair, { model, runs }));
  }
  await pair.end();
  return rows;
}

async function measure(
  bench: Bench,
  pair: Pair,
  load: { readonly model: ModelKind; readonly runs: number },
): Promise<Row> {
  const { model, runs } = load;
  const steps = bench.quick ? QUICK_STEPS : STEPS;
  const script: Script = { name: 'throughput', steps, tools: ['work'], bytes: 500 };
  const both = {
    perdure: () => together(runs, () => pair.perdure.run(model, script)),
    bare: () => together(runs, () => pair.bare.run(model, script)),
  };
  await interleave(bench.quick ? 0 : 1, both);
  const compared = await interleave(bench.quick ? 1 : 6, both);
  const shares = ratios(compared).map((ratio) => 1 / ratio);
  const { perdure, bare } = medians(compared);
  const rate = (ms: number): number => (runs * steps * 1_000) / ms;
  return {
    name: `throughput/${model}-${runs}`,
    what: `throughput of ${runs} runs against the bare loop, ${model} model`,
    value: median(shares),
    unit: 'x',
    bar: { atLeast: 0.87 },
    samples: shares,
    detail: `${show(rate(perdure))} against ${show(rate(bare))} steps/s`,
    ...(model === 'http' && {
      series: [
        { plot: 'throughput', side: 'perdure', points: [{ x: runs, y: rate(perdure) }] },
        { plot: 'throughput', side: 'bare loop', points: [{ x: runs, y: rate(bare) }] },
      ],
    }),
  };
}

/** Milliseconds until this many runs have ended. */
async function together(runs: number, run: () => Promise<number>): Promise<number> {
  const begun = performance.now();
  await Promise.all(Array.from({ length: runs }, run));
  return performance.now() - begun;
}
