import { randomUUID } from 'node:crypto';
import { createClient, type PerdureClient } from '../../src/index.js';
import { createWorkerFinder } from '../../src/live/live-workers.js';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import { startChild } from '../kit/child.js';
import { measureUnread } from '../live/unread.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import type { Row } from '../row.js';
import { PACED } from '../subject/models.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

const READERS_CHILD = new URL('../live/readers-child.ts', import.meta.url);
const READERS = 200;
/** Each step of the streaming model takes half a second. */
const SPOKEN: Script = { name: 'spoken', steps: 7, tools: ['work'], bytes: 100 };
/** The same from the stub, which continues to stream whatever the worker is busy with. */
const PACED_SCRIPT: Script = { name: PACED, steps: 7, tools: ['work'], bytes: 160 };

/** Measures the cost of live readers. */
export async function measureLive(bench: Bench): Promise<readonly Row[]> {
  const first = await bench.worker('perdure', { LIVE: '1' });
  const rows = [await firstToken(bench, first), await manyReaders(bench, first)];
  await first.end();
  return [...rows, await measureUnread(bench)];
}

/** By the clock that both processes share. */
async function firstToken(bench: Bench, worker: BenchWorker): Promise<Row> {
  const client = await clientOf(bench, worker);
  const samples: number[] = [];
  for (let repeat = 0; repeat < (bench.quick ? 1 : 6); repeat += 1) {
    const run = await client.start('speaking', { message: openingMessage(SPOKEN) });
    for await (const event of client.stream(run)) {
      if (event.type !== 'delta' || event.offset > 0) continue;
      samples.push(performance.timeOrigin + performance.now() - Number.parseFloat(event.text));
    }
  }
  await client.disconnect();
  return {
    name: 'live/first-token',
    what: 'first token at a reader elsewhere after it reached the worker',
    value: median(samples),
    unit: 'ms',
    bar: { atMost: 5 },
    samples,
    detail: `${samples.length} replies`,
  };
}

/** Compares a turn of a run that has many readers with a turn of one that has none. */
async function manyReaders(bench: Bench, worker: BenchWorker): Promise<Row> {
  const client = await clientOf(bench, worker);
  const [known] = (await createWorkerFinder(bench.home)()).filter(({ pid }) => pid === worker.pid);
  const turn = async (readers: number): Promise<number> => {
    const run = await client.start('streamed', { open: true, id: `readers-${randomUUID()}` });
    const URL = `${known?.url}/runs/${run.id}/events`;
    const child =
      readers === 0
        ? null
        : await startChild(READERS_CHILD, { env: { URL, READERS: String(readers) } });
    const begun = performance.now();
    await client.send(run, openingMessage(PACED_SCRIPT));
    await client.result(run, { turn: 1 });
    const ms = performance.now() - begun;
    await client.close(run);
    await child?.end();
    return ms;
  };
  const both = { perdure: () => turn(READERS), bare: () => turn(0) };
  await interleave(1, both);
  const compared = await interleave(bench.quick ? 1 : 6, both);
  await client.disconnect();
  const { perdure, bare } = medians(compared);
  return {
    name: 'live/readers',
    what: `a run with ${READERS} readers, against one without readers`,
    value: median(ratios(compared)),
    unit: 'x',
    bar: { atMost: 1.1 },
    samples: ratios(compared),
    detail: `${show(perdure)} against ${show(bare)} ms for ${PACED_SCRIPT.steps + 1} replies`,
  };
}

async function clientOf(bench: Bench, { queue }: BenchWorker): Promise<PerdureClient> {
  return await createClient({ client: bench.client, taskQueue: queue, home: bench.home });
}
