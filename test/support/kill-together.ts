import type { Client, WorkflowHandle } from '@temporalio/client';
import type { RunInput } from '../../src/core/input/input.js';
import { workerChild, workerHere } from './worker-child.js';

/** A run whose worker is killed. */
export interface DoomedRun {
  /** The workflow id. Where runs share a model server or a ledger, it tells them apart. */
  readonly id: string;
  readonly input: RunInput;
  /** Resolves when the run has come to the place where its worker is killed, and is held there. */
  readonly held: (handle: WorkflowHandle) => Promise<unknown>;
}

/**
 * Starts the runs on one worker process, kills it by SIGKILL when each run is held at its place, and lets a
 * worker of this process take over. Starting a process costs more CPU time than all of its runs.
 * `last`: called before the kill. Returns the handles in the order of the runs.
 */
export async function killTogether(
  client: Client,
  {
    env,
    runs,
    last = () => Promise.resolve(),
  }: {
    readonly env: Readonly<Record<string, string>>;
    readonly runs: readonly DoomedRun[];
    readonly last?: (handles: readonly WorkflowHandle[]) => Promise<void>;
  },
): Promise<{ readonly handles: readonly WorkflowHandle[]; readonly stop: () => Promise<void> }> {
  const worker = await workerChild(env);
  try {
    const taskQueue = env['QUEUE'] ?? '';
    const handles = await Promise.all(
      runs.map(async ({ id, input, held }) => {
        const start = { taskQueue, workflowId: id, args: [input] };
        const handle = await client.workflow.start('agent', start);
        await held(handle);
        return handle;
      }),
    );
    await last(handles);
    await worker.kill();
    const second = await workerHere(env);
    return { handles, stop: () => second.stop() };
  } finally {
    await worker.kill();
  }
}
