import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import { MODELS, startPair, type ModelKind, type Pair } from '../kit/pair.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const STEPS = 25;
const SCRIPT: Script = { name: 'latency', steps: STEPS, tools: ['work'], bytes: 500 };

/** Measures a decide + tool step of a run that has the machine to itself. */
export async function measureLatency(bench: Bench): Promise<readonly Row[]> {
  const pair = await startPair(bench);
  const rows: Row[] = [];
  for (const model of MODELS) rows.push(await measure(bench, pair, model));
  await pair.end();
  return rows;
}

async function measure(bench: Bench, pair: Pair, model: ModelKind): Promise<Row> {
  const both = {
    perdure: () => pair.perdure.run(model, SCRIPT),
    bare: () => pair.bare.run(model, SCRIPT),
  };
  await interleave(bench.quick ? 1 : 4, both);
  const compared = await interleave(bench.quick ? 2 : 20, both);
  const { perdure, bare } = medians(compared);
  return {
    name: `latency/${model}`,
    what: `step latency against the bare loop, ${model} model`,
    value: median(ratios(compared)),
    unit: 'x',
    bar: { atMost: 1.15 },
    samples: ratios(compared),
    detail: `${show(perdure / STEPS)} against ${show(bare / STEPS)} ms per step`,
    ...(model === 'http' && {
      series: [
        { plot: 'throughput', side: 'perdure', points: [{ x: 1, y: rate(perdure) }] },
        { plot: 'throughput', side: 'bare loop', points: [{ x: 1, y: rate(bare) }] },
      ],
    }),
  };
}

/** Steps per second of one run that takes so many milliseconds. */
function rate(ms: number): number {
  return (STEPS * 1_000) / ms;
}
