import { Worker } from '@temporalio/worker';
import type { History } from '../../src/history/history-event.js';
import { UntimedWorker } from '../../src/temporal/untimed-worker.js';
import { installRuntime } from '../../src/worker/log.js';
import type { Bench, WorkerKind } from '../kit/bench.js';
import { startPair, type Side } from '../kit/pair.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const SIDES = ['bare', 'perdure'] as const;
/** The worker of each side, which also replays. */
const WORKERS = { bare: Worker, perdure: UntimedWorker };

/**
 * Measures the replay of a run beside that of the bare loop; the difference of two lengths excludes the
 * cost of starting the replay.
 */
export async function measureReplay(bench: Bench): Promise<readonly Row[]> {
  const lengths = bench.quick ? { short: 5, long: 30 } : { short: 25, long: 200 };
  const pair = await startPair(bench);
  const historyOf = async (side: WorkerKind) => ({
    short: await record(pair[side], lengths.short),
    long: await record(pair[side], lengths.long),
  });
  const histories = { perdure: await historyOf('perdure'), bare: await historyOf('bare') };
  await pair.end();
  const perStep: Record<WorkerKind, number[]> = { perdure: [], bare: [] };
  for (let repeat = bench.quick ? -1 : -2; repeat < (bench.quick ? 2 : 20); repeat += 1) {
    for (const side of SIDES) {
      const short = await replay(side, bench.bundles[side], histories[side].short);
      const long = await replay(side, bench.bundles[side], histories[side].long);
      // The first ones warm up.
      if (repeat >= 0) perStep[side].push((long - short) / (lengths.long - lengths.short));
    }
  }
  const beyond = perStep.perdure.map((ms, at) => ms - (perStep.bare[at] ?? Number.NaN));
  return [
    {
      name: 'replay',
      what: `replay of a step beyond that of the bare loop (${lengths.long} against ${lengths.short} steps)`,
      value: median(beyond),
      unit: 'ms',
      bar: { atMost: 1 },
      samples: beyond,
      detail: `${show(median(perStep.perdure))} against ${show(median(perStep.bare))} ms per step`,
    },
  ];
}

async function record(side: Side, steps: number): Promise<History> {
  const script = { name: 'replay', steps, tools: ['work'], bytes: 2_000 };
  const handle = await side.start('scripted', script);
  await handle.result();
  return await handle.fetchHistory();
}

/** Milliseconds, including the start of a worker. Rejects if the history does not replay. */
async function replay(side: WorkerKind, codePath: string, history: History): Promise<number> {
  // The SDK shuts its runtime down with the last worker.
  installRuntime('ERROR');
  const begun = performance.now();
  await WORKERS[side].runReplayHistory({ workflowBundle: { codePath } }, history);
  return performance.now() - begun;
}
