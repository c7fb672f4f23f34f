/**
 * `npm run bench`: measures what perdure promises, on its own embedded server, and prints a table
 * and then one line of JSON. `--help` explains its options.
 */
import { writeFile } from 'node:fs/promises';
import { createBench, type Bench } from './kit/bench.js';
import { benchSettings } from './options.js';
import { loadNow, resultsOf } from './report/results.js';
import { keepGroup, keepResults, writeReport } from './report/write.js';
import { isMet, medianRun, type Row } from './row.js';
import { measureCallers } from './rows/callers.js';
import { measureCancel } from './rows/cancel.js';
import { measureCompletions } from './rows/completions.js';
import { measureCpu } from './rows/cpu.js';
import { measureDoors } from './rows/doors.js';
import { measureEncryption } from './rows/encryption.js';
import { measureFlat } from './rows/flat.js';
import { measureGraphs } from './rows/graphs.js';
import { measureHistory } from './rows/history.js';
import { measureIdle } from './rows/idle.js';
import { measureInMemory } from './rows/in-memory.js';
import { measureInbox } from './rows/inbox.js';
import { measureInline } from './rows/inline.js';
import { measureKill } from './rows/kill.js';
import { measureLatency } from './rows/latency.js';
import { measureLive } from './rows/live.js';
import { measureOneStep } from './rows/one-step.js';
import { measureReplay } from './rows/replay.js';
import { measureScale } from './rows/scale.js';
import { measureThroughput } from './rows/throughput.js';
import { measureWorkerMemory } from './rows/worker-memory.js';
import { measureWorkerStart } from './rows/worker-start.js';
import { table } from './table.js';

const GROUPS: Readonly<Record<string, (bench: Bench) => Promise<readonly Row[]>>> = {
  latency: measureLatency,
  cpu: measureCpu,
  inline: measureInline,
  encryption: measureEncryption,
  throughput: measureThroughput,
  completions: measureCompletions,
  'one-step': measureOneStep,
  graphs: measureGraphs,
  history: measureHistory,
  replay: measureReplay,
  flat: measureFlat,
  idle: measureIdle,
  inbox: measureInbox,
  kill: measureKill,
  callers: measureCallers,
  cancel: measureCancel,
  live: measureLive,
  doors: measureDoors,
  'worker-start': measureWorkerStart,
  'in-memory': measureInMemory,
  scale: measureScale,
  'worker-memory': measureWorkerMemory,
};

const {
  quick = false,
  only,
  json,
  profile,
  report,
  check = false,
  runs = 1,
} = benchSettings(process.argv.slice(2), Object.keys(GROUPS));
if (report === 'kept') {
  console.log((await writeReport()).join('\n'));
  process.exit();
}
const names = only === undefined ? Object.keys(GROUPS) : [only];
const loadBefore = loadNow();
const bench = await createBench({ quick, profileFolder: profile });
// The server has its own process group and would outlive an interrupted bench.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void bench.close().finally(() => process.exit(130)));
}
const rows: Row[] = [];
const failed: string[] = [];
for (const name of names) {
  console.error(`measuring ${name} …`);
  try {
    const measured: (readonly Row[])[] = [];
    while (measured.length < runs) measured.push((await GROUPS[name]?.(bench)) ?? []);
    rows.push(...medianRun(measured));
  } catch (error) {
    console.error(`${name} could not be measured:`, error);
    failed.push(name);
    process.exitCode = 1;
  }
}
await bench.close();

const { version: server } = bench.server;
const results = resultsOf(loadBefore, { quick, server, failed, rows, figures: [] });
console.log(table(rows));
console.log(JSON.stringify(results));
if (check && !rows.every(isMet)) process.exitCode = 1;
if (json !== undefined) await writeFile(json, `${JSON.stringify(results)}\n`);
if (report === true) {
  if (only === undefined) keepResults('own', results);
  else keepGroup('own', only, results);
  console.error(`written: ${(await writeReport()).join(', ')}`);
}
