// Compares perdure with other libraries in one run: on one server, with one stub model over HTTP. See README.md.
import { writeFile } from 'node:fs/promises';
import { createBench } from '../kit/bench.js';
import { peerSettings } from '../options.js';
import { loadNow, resultsOf, type Figure } from '../report/results.js';
import { keepGroup, keepResults, writeReport } from '../report/write.js';
import type { Series } from '../row.js';
import { killed, refused, sizeLimit } from './faults.js';
import { histories, latency, throughput, type Part, type Sizes } from './measures.js';
import { startSides } from './sides.js';

const PARTS = ['latency', 'throughput', 'histories', 'kills', 'faults', 'size-limit'];

const {
  quick = false,
  json,
  only,
  sizeLimit: isLimitSought = only === 'size-limit',
} = peerSettings(process.argv.slice(2), PARTS);

const FULL: Sizes = { repeats: 20, steps: 25, lengths: [25, 50, 100] };
const QUICK: Sizes = { repeats: 2, steps: 5, lengths: [5, 10] };
const SIZE_LIMIT_STEPS = 200;

const sizes = quick ? QUICK : FULL;
const loadBefore = loadNow();
const bench = await createBench({ quick });
// The server has its own process group and would outlive an interrupted bench.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void bench.close().finally(() => process.exit(130)));
}
const figures: Figure[] = [];
const series: Series[] = [];
const failed: string[] = [];
try {
  const sides = await startSides(bench);
  const parts: Readonly<Record<string, () => Promise<Part>>> = {
    latency: () => latency(bench, sides, sizes),
    throughput: () => throughput(bench, sides, sizes),
    histories: () => histories(bench, sides, sizes),
    kills: () => killed(bench, sides, sizes),
    faults: () => refused(bench, sides),
    ...(isLimitSought && {
      'size-limit': () => sizeLimit(bench, sides, SIZE_LIMIT_STEPS),
    }),
  };
  for (const [name, measure] of Object.entries(parts)) {
    if (only !== undefined && name !== only) continue;
    console.error(`measuring ${name} …`);
    try {
      const part = await measure();
      figures.push(...part.figures);
      series.push(...part.series);
    } catch (error) {
      console.error(`${name} could not be measured:`, error);
      failed.push(name);
      process.exitCode = 1;
    }
  }
} finally {
  await bench.close();
}
const { version: server } = bench.server;
const results = resultsOf(loadBefore, { quick, server, failed, rows: [], figures, series });
console.log(JSON.stringify(results));
if (json !== undefined) {
  await writeFile(json, `${JSON.stringify(results)}\n`);
}
if (!quick) {
  if (only === undefined) keepResults('peers', results);
  else keepGroup('peers', only, results);
  console.error(`written: ${(await writeReport()).join(', ')}`);
}
