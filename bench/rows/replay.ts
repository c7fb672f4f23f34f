import { Worker } from '@temporalio/worker';
import type { History } from '../../src/history/history-event.js';
import { installRuntime } from '../../src/worker/parts.js';
import type { Bench } from '../kit/bench.js';
import { startPair, type Pair } from '../kit/pair.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

/**
 * Measures the replay of a run; the difference of two lengths excludes the cost of starting the
 * replay.
 */
export async function measureReplay(bench: Bench): Promise<readonly Row[]> {
  const lengths = bench.quick ? { short: 5, long: 30 } : { short: 25, long: 200 };
  const pair = await startPair(bench);
  const short = await historyOf(pair, lengths.short);
  const long = await historyOf(pair, lengths.long);
  await pair.end();
  await replay(bench, long);
  const times: { readonly short: number; readonly long: number }[] = [];
  for (let repeat = 0; repeat < (bench.quick ? 2 : 8); repeat += 1) {
    times.push({ short: await replay(bench, short), long: await replay(bench, long) });
  }
  const perStep = times.map((time) => (time.long - time.short) / (lengths.long - lengths.short));
  return [
    {
      name: 'replay',
      what: `replay of a step (${lengths.long} against ${lengths.short} steps)`,
      value: median(perStep),
      unit: 'ms',
      bar: { atMost: 4 },
      samples: perStep,
      detail: `${show(median(times.map((time) => time.long)))} ms for the whole of ${lengths.long}`,
    },
  ];
}

async function historyOf(pair: Pair, steps: number): Promise<History> {
  const script = { name: 'replay', steps, tools: ['work'], bytes: 2_000 };
  const handle = await pair.perdure.start('scripted', script);
  await handle.result();
  return await handle.fetchHistory();
}

/** Milliseconds, including the start of a worker. Rejects if the history does not replay. */
async function replay({ bundlePath }: Bench, history: History): Promise<number> {
  // The SDK shuts its runtime down with the last worker.
  installRuntime('ERROR');
  const begun = performance.now();
  await Worker.runReplayHistory({ workflowBundle: { codePath: bundlePath } }, history);
  return performance.now() - begun;
}
