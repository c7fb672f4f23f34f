// Runs the same conversations on engines that are not Temporal: labelled rows, each on its own storage. See README.md.
import { randomUUID } from 'node:crypto';
import { openingMessage, type Script } from '../conversation.js';
import { createBench } from '../kit/bench.js';
import { startChild, type Child } from '../kit/child.js';
import { engineSettings } from '../options.js';
import { loadNow, resultsOf, type Figure } from '../report/results.js';
import { keepResults, writeReport } from '../report/write.js';
import { median } from '../statistics.js';
import { holdOnce, killOnce } from './faults.js';
import { run } from './measures.js';
import { startPerdure, versionOf, wholeHistory, type Side } from './sides.js';

interface Engine {
  readonly name: string;
  run(script: Script): Promise<number>;
  /** Milliseconds of CPU that its process has used. */
  cpuMs(): Promise<number>;
  /** Bytes that its storage has grown by since the last call; of perdure, the history of its last run. */
  stored(): Promise<number>;
  /** Kills the process during a model call. Returns the milliseconds until a new one repeats it; null if it does not. */
  killed(): Promise<number | null>;
}

/** What this file uses of `pg`, which only this folder has, so that the repository compiles without it. */
interface Pg {
  readonly Client: new (options: { readonly connectionString: string }) => {
    connect(): Promise<void>;
    query(text: string): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
    end(): Promise<void>;
  };
}

const { quick = false, postgres } = engineSettings(process.argv.slice(2));
const repeats = quick ? 2 : 10;
const steps = quick ? 5 : 25;
const LENGTHS = quick ? [5] : [25, 50, 100];

const loadBefore = loadNow();
const bench = await createBench({ quick });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void bench.close().finally(() => process.exit(130)));
}
const PG = new URL('./node_modules/pg/esm/index.mjs', import.meta.url).href;
const { Client }: Pg = await import(PG);
const admin = new Client({ connectionString: postgres });
const children = new Set<Child>();
const figures: Figure[] = [];
try {
  await admin.connect();
  const engines = [
    perdureOn(await startPerdure(bench)),
    await engineOf('langgraph', `LangGraph ${versionOf('@langchain/langgraph')}, PostgreSQL`),
    await engineOf('dbos', `DBOS ${versionOf('@dbos-inc/dbos-sdk')}, PostgreSQL`),
    await engineOf('mastra', `Mastra ${versionOf('@mastra/core')}, durable agent, PostgreSQL`),
  ];
  for (const measure of [latency, throughput, storage, recovery]) {
    console.error(`measuring ${measure.name} …`);
    figures.push(...(await measure(engines)));
  }
} finally {
  await Promise.all([...children].map((child) => child.kill()));
  await admin.end().catch(() => undefined);
  await bench.close();
}
const measured = { quick, server: bench.server.version, failed: [], rows: [], figures };
const results = resultsOf(loadBefore, measured);
console.log(JSON.stringify(results));
if (!quick) {
  keepResults('engines', results);
  console.error(`written: ${(await writeReport()).join(', ')}`);
}

async function latency(engines: readonly Engine[]): Promise<readonly Figure[]> {
  const all: Figure[] = [];
  for (const bytes of [500, 2_000]) {
    const script: Script = { name: `latency-${bytes}`, steps, tools: ['work'], bytes };
    const samples = engines.map((): number[] => []);
    for (const engine of engines) await engine.run(script);
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      for (const [at, engine] of engines.entries()) {
        samples[at]?.push((await engine.run(script)) / steps);
      }
    }
    all.push(...figuresOf(engines, `a step, messages of ${bytes} B`, 'ms', samples));
  }
  return all;
}

async function throughput(engines: readonly Engine[]): Promise<readonly Figure[]> {
  const script: Script = { name: 'throughput', steps, tools: ['work'], bytes: 500 };
  const rates = engines.map((): number[] => []);
  const cpu = engines.map((): number[] => []);
  for (let repeat = 0; repeat < Math.ceil(repeats / 4); repeat += 1) {
    for (const [at, engine] of engines.entries()) {
      const before = await engine.cpuMs();
      const begun = performance.now();
      await Promise.all(Array.from({ length: 10 }, () => engine.run(script)));
      const all = 10 * steps;
      rates[at]?.push((all * 1_000) / (performance.now() - begun));
      cpu[at]?.push(((await engine.cpuMs()) - before) / all);
    }
  }
  return [
    ...figuresOf(engines, 'steps, 10 runs at once', 'per s', rates),
    ...figuresOf(engines, 'CPU of the process for a step, 10 runs at once', 'ms', cpu),
  ];
}

async function storage(engines: readonly Engine[]): Promise<readonly Figure[]> {
  const all: Figure[] = [];
  for (const length of LENGTHS) {
    const script: Script = {
      name: `stored-${length}`,
      steps: length,
      tools: ['work'],
      bytes: 2_000,
    };
    for (const engine of engines) {
      await engine.stored();
      await engine.run(script);
      const value = (await engine.stored()) / 1e6;
      const what = `growth of the storage, ${length} steps of 2 kB`;
      all.push({ what, side: engine.name, value, unit: 'MB', samples: [] });
    }
  }
  return all;
}

async function recovery(engines: readonly Engine[]): Promise<readonly Figure[]> {
  const what = 'kill -9 during a model call, next process at once: until the next request';
  const all: Figure[] = [];
  for (const engine of engines) {
    const samples: number[] = [];
    let lost = 0;
    for (let repeat = 0; repeat < Math.ceil(repeats / 4); repeat += 1) {
      const ms = await engine.killed();
      if (ms === null) lost += 1;
      else samples.push(ms / 1_000);
    }
    const value =
      lost > 0 ? `${lost} of ${samples.length + lost} runs did not go on` : median(samples);
    all.push({ what, side: engine.name, value, unit: 's', samples });
  }
  return all;
}

function figuresOf(
  engines: readonly Engine[],
  what: string,
  unit: Figure['unit'],
  samples: readonly (readonly number[])[],
): readonly Figure[] {
  return engines.map(({ name: side }, at) => {
    const values = samples[at] ?? [];
    return { what, side, value: median(values), unit, samples: values };
  });
}

/** perdure as it is shipped, on the embedded server. */
function perdureOn(side: Side): Engine {
  let last = '';
  return {
    name: side.name,
    run: (script) =>
      run(bench, { ...side, start: async (one) => (last = await side.start(one)) }, script),
    cpuMs: async () => (await side.worker.reading()).cpuMs,
    stored: async () => (last === '' ? 0 : (await wholeHistory(bench, last)).bytes),
    killed: () => killOnce(bench, side),
  };
}

/** A module of `engines`, with a database of its own. */
async function engineOf(module: string, name: string): Promise<Engine> {
  const database = `perdure_bench_${module}`;
  await admin.query(`drop database if exists ${database} with (force)`);
  await admin.query(`create database ${database}`);
  const url = new URL(postgres);
  url.pathname = database;
  const start = async (): Promise<Child> => {
    const env = { DATABASE_URL: url.href, OPENAI_BASE_URL: bench.stub.baseUrl };
    const child = await startChild(new URL(`./engines/${module}.js`, import.meta.url), { env });
    children.add(child);
    return child;
  };
  let child = await start();
  let size = 0;
  return {
    name,
    async run(script) {
      const begun = performance.now();
      const id = randomUUID();
      await ended(child, { run: { id, message: openingMessage(script) } }, id);
      return performance.now() - begun;
    },
    cpuMs: async () => (await child.reading()).cpuMs,
    async stored() {
      const { rows } = await admin.query(`select pg_database_size('${database}') as bytes`);
      const before = size;
      size = Number(rows[0]?.['bytes']);
      return size - before;
    },
    async killed() {
      const held = holdOnce(bench);
      const id = randomUUID();
      void child.ask({ run: { id, message: openingMessage(held.script) } }, `ended ${id}`);
      await held.reached;
      const at = Date.now();
      await child.kill();
      child = await start();
      const isRecovered = await ended(child, { recover: { id } }, id).then(
        () => true,
        () => false,
      );
      return isRecovered ? (await held.repeated) - at : null;
    },
  };
}

async function ended(child: Child, question: object, id: string): Promise<void> {
  const failed = child.next(`failed ${id}`).then(() => {
    throw new Error(`run ${id} failed`);
  });
  await Promise.race([child.ask({ ...question }, `ended ${id}`), failed]);
}
