import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import type { RunInput } from '../../src/core/input/input.js';
import { startRun } from '../../src/updates/start.js';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench, BenchWorker } from './bench.js';

export type ModelKind = 'scripted' | 'http';
/** An agent of the bench that the bare loop's models have no counterpart for. */
export type OwnAgent = 'extract' | 'inline' | 'inline-http' | 'reading';
export const MODELS: readonly ModelKind[] = ['scripted', 'http'];

/** One side of a comparison, ready to run. */
export interface Side {
  /** Starts a conversation; the result arrives when the last reply is recorded. */
  start(model: ModelKind | OwnAgent, script: Script): Promise<WorkflowHandle>;
  /** Milliseconds from start to result. */
  run(model: ModelKind | OwnAgent, script: Script): Promise<number>;
  /** CPU time of its worker since it began, in ms. */
  cpuMs(): Promise<number>;
}

export interface Pair {
  readonly perdure: Side;
  readonly bare: Side;
  end(): Promise<void>;
}

/** Starts a run as every client does. */
export async function startAgent(
  bench: Bench,
  taskQueue: string,
  input: RunInput,
): Promise<WorkflowHandle> {
  const { id, runId } = await startRun(bench.client, input, { id: randomUUID(), taskQueue });
  return bench.client.workflow.getHandle(id, undefined, { firstExecutionRunId: runId });
}

/** perdure and the bare loop, each in its own worker process, with the same server and settings. */
export async function startPair(bench: Bench): Promise<Pair> {
  const perdure = await bench.worker('perdure');
  const bare = await bench.worker('bare');
  return {
    perdure: side(perdure, async (model, script) =>
      startAgent(bench, perdure.queue, { agent: model, message: openingMessage(script) }),
    ),
    bare: side(bare, (model, script) =>
      bench.client.workflow.start('bareLoop', {
        taskQueue: bare.queue,
        workflowId: randomUUID(),
        args: [{ model, message: openingMessage(script) }],
      }),
    ),
    async end() {
      await Promise.all([perdure.end(), bare.end()]);
    },
  };
}

function side(worker: BenchWorker, start: Side['start']): Side {
  return {
    start,
    async run(model, script) {
      const begun = performance.now();
      const handle = await start(model, script);
      await handle.result();
      return performance.now() - begun;
    },
    cpuMs: async () => (await worker.reading()).cpuMs,
  };
}
