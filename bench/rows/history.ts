import type { WorkflowHandle } from '@temporalio/client';
import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { misrecorded } from '../kit/history.js';
import { startPair, type Side } from '../kit/pair.js';
import type { Row, Series } from '../row.js';
import { exponent, slope } from '../statistics.js';
import { show } from '../table.js';

type Lengths = readonly [number, ...number[]];

const BYTES = 2_000;
/** A step of one call adds a reply and a result. */
const MESSAGE_BYTES_PER_STEP = 2 * BYTES;
const LENGTHS: Lengths = [25, 50, 100, 200];
const QUICK_LENGTHS: Lengths = [5, 10, 20];
const MANY_CALLS = 3;

interface Measured {
  readonly steps: number;
  readonly ms: number;
  readonly bytes: number;
  readonly events: number;
  readonly lost: number;
  readonly doubled: number;
}

/**
 * Measures how the history grows. This does not depend on the machine, so one run per length is
 * enough.
 */
export async function measureHistory(bench: Bench): Promise<readonly Row[]> {
  const pair = await startPair(bench);
  const [shortest, ...longer] = bench.quick ? QUICK_LENGTHS : LENGTHS;
  const { perdure, bare } = pair;
  const least = await measure(perdure, shortest, ['work']);
  const single = [least];
  const others = [await measure(bare, shortest, ['work'])];
  for (const steps of longer) {
    single.push(await measure(perdure, steps, ['work']));
    others.push(await measure(bare, steps, ['work']));
  }
  const many = await measure(
    perdure,
    least.steps,
    Array.from({ length: MANY_CALLS }, () => 'work'),
  );
  await pair.end();
  const series = [...lines('perdure', single), ...lines('bare loop', others)];
  return [...growth(single, series), perFurtherCall(least, many), recordedOnce([...single, many])];
}

async function measure(side: Side, steps: number, tools: readonly string[]): Promise<Measured> {
  const script: Script = { name: `history-${steps}-${tools.length}`, steps, tools, bytes: BYTES };
  const begun = performance.now();
  const handle: WorkflowHandle = await side.start('scripted', script);
  await handle.result();
  const ms = performance.now() - begun;
  const { historySize = Number.NaN, historyLength } = await handle.describe();
  const recorded = misrecorded(await handle.fetchHistory(), script);
  return { steps, ms, bytes: historySize, events: historyLength, ...recorded };
}

function lines(side: string, runs: readonly Measured[]): readonly Series[] {
  return [
    { plot: 'latency', side, points: runs.map((run) => ({ x: run.steps, y: run.ms / run.steps })) },
    { plot: 'bytes', side, points: runs.map((run) => ({ x: run.steps, y: run.bytes / 1e6 })) },
  ];
}

function growth(single: readonly Measured[], series: readonly Series[]): readonly Row[] {
  const lengths = single.map(({ steps }) => steps).join(', ');
  const bytes = single.map((run) => ({ x: run.steps, y: run.bytes }));
  const events = single.map((run) => ({ x: run.steps, y: run.events }));
  const ownBytes = slope(bytes) - MESSAGE_BYTES_PER_STEP;
  return [
    {
      name: 'history/exponent',
      what: `growth of history over ${lengths} steps of 2 kB messages`,
      value: exponent(bytes),
      unit: 'exponent',
      bar: { atMost: 1.05 },
      samples: [],
      detail: bytes.map(({ y }) => `${show(y / 1_000)} kB`).join(', '),
      series,
    },
    {
      name: 'history/events',
      what: 'events of an additional step of one call',
      value: slope(events),
      unit: 'events',
      bar: { atMost: 12 },
      samples: [],
      detail: `${events.map(({ y }) => y).join(', ')} in all`,
    },
    {
      name: 'history/bytes',
      what: 'bytes of a step in addition to its messages',
      value: ownBytes,
      unit: 'bytes',
      bar: { atMost: 2_600 },
      samples: [],
      detail: `${show(slope(bytes))} with them`,
    },
  ];
}

function perFurtherCall(one: Measured, many: Measured): Row {
  const additional = one.steps * (MANY_CALLS - 1);
  return {
    name: 'history/further-call',
    what: 'events of an additional call in a step',
    value: (many.events - one.events) / additional,
    unit: 'events',
    bar: { atMost: 6 },
    samples: [],
    detail: `${one.events} and ${many.events} events in ${one.steps} steps of 1 and ${MANY_CALLS} calls`,
  };
}

function recordedOnce(runs: readonly Measured[]): Row {
  const lost = runs.reduce((sum, run) => sum + run.lost, 0);
  const doubled = runs.reduce((sum, run) => sum + run.doubled, 0);
  return {
    name: 'history/once',
    what: 'messages that are not recorded exactly once',
    value: lost + doubled,
    unit: 'count',
    bar: { atMost: 0 },
    samples: [],
    detail: `${lost} lost, ${doubled} doubled in ${runs.length} runs`,
  };
}
