import { relay, NEAR, type Leg, type StepCost } from '../flat/relay.js';
import { prefixRow } from '../flat/prefix.js';
import type { Bench } from '../kit/bench.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

/** A quarter to three quarters of the model's window. */
const BOUNDED_PROMPT = 'prompt of 18 to 54 kB at both';
const GROWING_PROMPT = 'prompt never summarized';
const FLAT = { between: [0.9, 1.1] } as const;

/**
 * Compares the cost of a step late in a run with that of an early one. Both stretches include a
 * change of segment, with 2 kB messages and calls that are remembered (`keyed`). The bounded prompt
 * is summarized about every tenth step, so it has the same average size at both places.
 */
export async function measureFlat(bench: Bench): Promise<readonly Row[]> {
  const far = bench.quick ? 500 : 1_000;
  const bounded = await relay(bench, { agent: 'bounded', far, legs: bench.quick ? 1 : 4 });
  const unbounded = await relay(bench, { agent: 'unbounded', far, legs: bench.quick ? 1 : 3 });
  const places = `step ${far} against ${NEAR}`;
  return [
    ...rows(bounded, ['ms', 'bytes', 'cpuMs'], { places, name: '', prompt: BOUNDED_PROMPT }),
    ...rows(unbounded, ['ms', 'bytes'], { places, name: '-growing', prompt: GROWING_PROMPT }),
    await prefixRow(bench),
  ];
}

const COSTS: Readonly<Record<keyof StepCost, { name: string; what: string; unit: string }>> = {
  ms: { name: 'latency', what: 'latency', unit: 'ms' },
  bytes: { name: 'bytes', what: 'bytes of history', unit: 'bytes' },
  cpuMs: { name: 'cpu', what: 'processor time of the worker', unit: 'ms' },
};

function rows(
  legs: readonly Leg[],
  costs: readonly (keyof StepCost)[],
  labels: { readonly places: string; readonly name: string; readonly prompt: string },
): readonly Row[] {
  return costs.map((cost) => {
    const { name, what, unit } = COSTS[cost];
    const samples = legs.map(({ early, late }) => late[cost] / early[cost]);
    const late = show(median(legs.map((leg) => leg.late[cost])));
    const early = show(median(legs.map((leg) => leg.early[cost])));
    return {
      name: `flat/${name}${labels.name}`,
      what: `${what} of ${labels.places}, ${labels.prompt}`,
      value: median(samples),
      unit: 'x',
      bar: FLAT,
      samples,
      detail: `${late} against ${early} ${unit} per step, two runs at once`,
    };
  });
}
