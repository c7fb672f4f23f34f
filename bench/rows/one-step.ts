import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import { MODELS, startPair, type ModelKind, type Pair } from '../kit/pair.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const SCRIPT: Script = { name: 'one-step', steps: 0, tools: [], bytes: 500 };

/**
 * Measures a run of one reply, from start to result: the cost of a run before its first tool call.
 */
export async function measureOneStep(bench: Bench): Promise<readonly Row[]> {
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
  await interleave(bench.quick ? 5 : 30, both);
  const compared = await interleave(bench.quick ? 5 : 60, both);
  const { perdure, bare } = medians(compared);
  return {
    name: `one-step/${model}`,
    what: `one-step run against one bare activity, ${model} model`,
    value: median(ratios(compared)),
    unit: 'x',
    bar: { atMost: 1.25 },
    samples: ratios(compared),
    detail: `${show(perdure)} against ${show(bare)} ms from start to result`,
  };
}
