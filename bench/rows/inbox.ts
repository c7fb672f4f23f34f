import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { openClient } from '../../src/client/create-client.js';
import { openingMessage } from '../conversation.js';
import type { Bench } from '../kit/bench.js';
import { inParallel } from '../kit/in-parallel.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';

const AT_ONCE = 10;

/** Measures how long an inbox takes to list the requests of many runs that wait for decisions. */
export async function measureInbox(bench: Bench): Promise<readonly Row[]> {
  const count = bench.quick ? 200 : 1_000;
  const worker = await bench.worker('perdure');
  const ids = Array.from({ length: count }, () => `inbox-${randomUUID()}`);
  await inParallel(ids, { atOnce: AT_ONCE }, (id) => startWaiting(bench, worker.queue, id));
  const client = await openClient({ client: bench.client, taskQueue: worker.queue });
  const samples: number[] = [];
  // Visibility lags behind the runs, and an inbox that is not complete yet does not count.
  while (samples.length < 5) {
    const begun = performance.now();
    const { requests } = await client.requests();
    const tookMs = performance.now() - begun;
    if (requests.length < count) await pause(200);
    else samples.push(tookMs);
  }
  await inParallel(ids, { atOnce: AT_ONCE }, async (id) => {
    await bench.client.workflow.getHandle(id).terminate();
  });
  await worker.end();
  return [
    {
      name: 'inbox',
      what: `inbox over ${count} runs that wait for a decision`,
      value: median(samples),
      unit: 'ms',
      bar: { atMost: 2_000 },
      samples,
      detail: 'without a worker: from the memos of the runs',
    },
  ];
}

async function startWaiting(bench: Bench, taskQueue: string, id: string): Promise<void> {
  const message = openingMessage({ name: id, steps: 1, tools: ['work'], bytes: 100 });
  const input = { agent: 'scripted', message, rules: [{ tool: 'work', then: 'ask' }] };
  await bench.client.workflow.start('agent', { workflowId: id, taskQueue, args: [input] });
}
