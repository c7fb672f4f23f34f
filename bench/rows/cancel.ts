import { withDelivery } from '../../src/testing/replies.js';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { openingMessage } from '../conversation.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';
import { stubAnswer } from '../subject/models.js';

/** Measures from the request of a native cancel until the work in flight receives it. */
export async function measureCancel(bench: Bench): Promise<readonly Row[]> {
  const worker = await bench.worker('perdure');
  const repeats = bench.quick ? 2 : 8;
  const tool: number[] = [];
  const model: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    tool.push(await untilToolAborts(bench, worker));
    model.push(await untilRequestCloses(bench, worker));
  }
  await worker.end();
  return [row('tool', 'a running tool', tool), row('model', 'a model call under way', model)];
}

function row(name: string, what: string, samples: readonly number[]): Row {
  return {
    name: `cancel/${name}`,
    what: `cancel reaches ${what}, at the latest`,
    value: Math.max(...samples),
    unit: 'ms',
    bar: { atMost: 500 },
    samples,
    detail: `median ${show(median(samples))} ms`,
  };
}

async function untilToolAborts(bench: Bench, worker: BenchWorker): Promise<number> {
  const started = worker.next('tool-started');
  const aborted = worker.next('tool-aborted');
  const handle = await start(bench, worker, `hang-${randomUUID()}`);
  await started;
  const asked = Date.now();
  await handle.cancel();
  const { at } = await aborted;
  await ended(handle);
  return at - asked;
}

/** The stub holds its answer; when the call is aborted, it sees the connection close. */
async function untilRequestCloses(bench: Bench, worker: BenchWorker): Promise<number> {
  const name = `held-${randomUUID()}`;
  const held = bench.stub.barrier(name);
  let closed: Promise<number> | undefined;
  bench.stub.answer((request) => {
    if (!request.text.includes(name)) return undefined;
    closed = request.ended.then(() => Date.now());
    return withDelivery(stubAnswer(request), { holdBeforeHeaders: name });
  });
  const handle = await start(bench, worker, name);
  await held.reached;
  const asked = Date.now();
  await handle.cancel();
  const at = await closed;
  await ended(handle);
  return (at ?? Number.NaN) - asked;
}

async function start(bench: Bench, worker: BenchWorker, name: string): Promise<WorkflowHandle> {
  return await bench.client.workflow.start('agent', {
    taskQueue: worker.queue,
    workflowId: name,
    args: [
      { agent: 'hang', message: openingMessage({ name, steps: 1, tools: ['hang'], bytes: 100 }) },
    ],
  });
}

/** A canceled run rejects; all that matters here is that it ends. */
async function ended(handle: WorkflowHandle): Promise<void> {
  await handle.result().catch(() => undefined);
}
