/**
 * `npm run bench`: measures what perdure promises, on its own embedded server, and prints a table
 * and then one line of JSON. A missed target is marked and does not fail the bench; the exit code
 * is 1 only if something could not be measured.
 *
 * `--quick` fewer repeats · `--only NAME` one group of rows · `--json FILE` also writes the JSON there ·
 * `--profile FOLDER` CPU profiles of the workers.
 */
import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { createBench, type Bench } from './kit/bench.js';
import { isMet, type Row } from './row.js';
import { measureCallers } from './rows/callers.js';
import { measureCancel } from './rows/cancel.js';
import { measureCompletions } from './rows/completions.js';
import { measureFlat } from './rows/flat.js';
import { measureGraphs } from './rows/graphs.js';
import { measureHistory } from './rows/history.js';
import { measureIdle } from './rows/idle.js';
import { measureInbox } from './rows/inbox.js';
import { measureInline } from './rows/inline.js';
import { measureKill } from './rows/kill.js';
import { measureLatency } from './rows/latency.js';
import { measureLive } from './rows/live.js';
import { measureOneStep } from './rows/one-step.js';
import { measureReplay } from './rows/replay.js';
import { measureThroughput } from './rows/throughput.js';
import { measureWorkerStart } from './rows/worker-start.js';
import { spreadOf } from './statistics.js';
import { table } from './table.js';

const GROUPS: Readonly<Record<string, (bench: Bench) => Promise<readonly Row[]>>> = {
  latency: measureLatency,
  inline: measureInline,
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
  'worker-start': measureWorkerStart,
};

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    json: { type: 'string' },
    profile: { type: 'string' },
  },
});
const { quick, only } = values;
const names = only === undefined ? Object.keys(GROUPS) : [only];
const unknown = names.find((name) => !(name in GROUPS));
if (unknown !== undefined) {
  throw new Error(`--only ${unknown}: expected one of ${Object.keys(GROUPS).join(', ')}`);
}

const bench = await createBench({ quick, profileFolder: values.profile });
// The server has its own process group and would outlive an interrupted bench.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void bench.close().finally(() => process.exit(130)));
}
const rows: Row[] = [];
for (const name of names) {
  console.error(`measuring ${name} …`);
  try {
    rows.push(...((await GROUPS[name]?.(bench)) ?? []));
  } catch (error) {
    console.error(`${name} could not be measured:`, error);
    process.exitCode = 1;
  }
}
await bench.close();

const report = JSON.stringify({
  at: new Date().toISOString(),
  node: process.version,
  cpus: cpus().length,
  server: bench.server.version,
  quick,
  rows: rows.map((row) => ({
    ...row,
    met: isMet(row),
    ...(row.samples.length > 0 && { spread: spreadOf(row.samples) }),
  })),
});
console.log(table(rows));
console.log(report);
if (values.json !== undefined) await writeFile(values.json, `${report}\n`);
