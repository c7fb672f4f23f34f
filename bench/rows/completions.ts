import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import { startPair, type ModelKind, type OwnAgent, type Pair } from '../kit/pair.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const SCRIPT: Script = { name: 'completion', steps: 0, tools: [], bytes: 500 };
const AT_ONCE = 40;
const RUNS = 200;
const QUICK_RUNS = 40;

/**
 * Runs per second if a run is one reply: plain text, the same over HTTP, and JSON under a schema.
 */
export async function measureCompletions(bench: Bench): Promise<readonly Row[]> {
  const pair = await startPair(bench);
  const rows: Row[] = [];
  for (const [agent, model] of [
    ['scripted', 'scripted'],
    ['http', 'http'],
    ['extract', 'scripted'],
  ] as const) {
    rows.push(await measure(bench, pair, { agent, model }));
  }
  await pair.end();
  return rows;
}

async function measure(
  bench: Bench,
  pair: Pair,
  { agent, model }: { readonly agent: ModelKind | OwnAgent; readonly model: ModelKind },
): Promise<Row> {
  const runs = bench.quick ? QUICK_RUNS : RUNS;
  const both = {
    perdure: () => pooled(runs, () => pair.perdure.run(agent, SCRIPT)),
    bare: () => pooled(runs, () => pair.bare.run(model, SCRIPT)),
  };
  await interleave(1, both);
  const compared = await interleave(bench.quick ? 1 : 6, both);
  const shares = ratios(compared).map((ratio) => 1 / ratio);
  const { perdure, bare } = medians(compared);
  const rate = (ms: number): string => show((runs * 1_000) / ms);
  return {
    name: `completions/${agent}`,
    what: `one-reply runs, ${AT_ONCE} at once, against one bare activity each: ${agent}`,
    value: median(shares),
    unit: 'x',
    bar: { atLeast: 0.9 },
    samples: shares,
    detail: `${rate(perdure)} against ${rate(bare)} runs/s`,
  };
}

/** Milliseconds until this many runs have ended; each run that ends is replaced by a new one. */
async function pooled(runs: number, run: () => Promise<number>): Promise<number> {
  const begun = performance.now();
  let left = runs;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await run();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return performance.now() - begun;
}
