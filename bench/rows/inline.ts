import type { Script } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { cpuMsOf } from '../kit/cpu.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import { type ModelKind, type Pair, type Side, startPair } from '../kit/pair.js';
import type { Row } from '../row.js';
import { median, slope } from '../statistics.js';
import { show } from '../table.js';
import { READ_MS } from '../subject/agents.js';

const STEPS = 25;
const SCRIPT: Script = { name: 'inline', steps: STEPS, tools: ['work'], bytes: 500 };
const RUNS = 10;
const READS = 20;
const READ_STEPS = 5;

/** Measures steps whose calls are executed within the workflow task. */
export async function measureInline(bench: Bench): Promise<readonly Row[]> {
  const pair = await startPair(bench);
  const rows = [
    await latency(bench, pair, { agent: 'inline', model: 'scripted' }),
    await latency(bench, pair, { agent: 'inline-http', model: 'http' }),
    await cpu(bench, pair),
    await events(pair),
    await manyReads(bench, pair),
  ];
  await pair.end();
  return rows;
}

async function latency(
  bench: Bench,
  pair: Pair,
  { agent, model }: { readonly agent: 'inline' | 'inline-http'; readonly model: ModelKind },
): Promise<Row> {
  const both = {
    perdure: () => pair.perdure.run(agent, SCRIPT),
    bare: () => pair.bare.run(model, SCRIPT),
  };
  await interleave(bench.quick ? 1 : 4, both);
  const compared = await interleave(bench.quick ? 2 : 20, both);
  const { perdure, bare } = medians(compared);
  return {
    name: `inline/${model}`,
    what: `latency of an inline step against the bare loop, ${model} model`,
    value: median(ratios(compared)),
    unit: 'x',
    bar: { atMost: 0.9 },
    samples: ratios(compared),
    detail: `${show(perdure / STEPS)} against ${show(bare / STEPS)} ms per step`,
  };
}

/** CPU time of the worker and of the server, with several runs at once. */
async function cpu(bench: Bench, pair: Pair): Promise<Row> {
  const { pid } = bench.server;
  const both = {
    perdure: () => spent(pair.perdure, 'inline', pid),
    bare: () => spent(pair.bare, 'scripted', pid),
  };
  await interleave(1, both);
  const compared = await interleave(bench.quick ? 1 : 8, both);
  const shares = ratios(compared).map((ratio) => 1 / ratio);
  const { perdure, bare } = medians(compared);
  const ofStep = (ms: number): string => show(ms / RUNS / STEPS);
  return {
    name: 'inline/cpu',
    what: `inline steps per CPU second of worker and server against the bare loop, ${RUNS} runs at once`,
    value: median(shares),
    unit: 'x',
    bar: { atLeast: 1.15 },
    samples: shares,
    detail: `${ofStep(perdure)} against ${ofStep(bare)} ms of CPU per step`,
  };
}

async function spent(
  side: Side,
  agent: 'inline' | 'scripted',
  server: number | null,
): Promise<number> {
  const now = async (): Promise<number> => (await side.cpuMs()) + (await cpuMsOf(server));
  const before = await now();
  await Promise.all(Array.from({ length: RUNS }, () => side.run(agent, SCRIPT)));
  return (await now()) - before;
}

async function events({ perdure }: Pair): Promise<Row> {
  const counts: { readonly x: number; readonly y: number }[] = [];
  for (const steps of [10, 20, 40]) {
    const handle = await perdure.start('inline', { ...SCRIPT, steps });
    await handle.result();
    counts.push({ x: steps, y: (await handle.describe()).historyLength });
  }
  return {
    name: 'inline/events',
    what: 'events of an additional inline step',
    value: slope(counts),
    unit: 'events',
    bar: { atMost: 7.5 },
    samples: [],
    detail: `${counts.map(({ y }) => y).join(', ')} in all`,
  };
}

/** Many reads in one reply, inline and as activities. */
async function manyReads(bench: Bench, { perdure }: Pair): Promise<Row> {
  const tools = Array.from({ length: READS }, () => 'read');
  const script: Script = { name: 'reads', steps: READ_STEPS, tools, bytes: 500 };
  const both = {
    perdure: () => perdure.run('inline', script),
    bare: () => perdure.run('reading', script),
  };
  await interleave(1, both);
  const compared = await interleave(bench.quick ? 2 : 10, both);
  const { perdure: inline, bare: ordinary } = medians(compared);
  return {
    name: 'inline/reads',
    what: `${READS} reads of ${READ_MS} ms in one reply, inline against activities`,
    value: median(ratios(compared)),
    unit: 'x',
    bar: { atMost: 0.75 },
    samples: ratios(compared),
    detail: `${show(inline)} against ${show(ordinary)} ms for ${READ_STEPS} replies`,
  };
}
