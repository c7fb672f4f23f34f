import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { isObject } from '../../src/core/text/json.js';
import { openingMessage, type Script } from '../conversation.js';
import type { Bench, BenchWorker } from '../kit/bench.js';
import { misrecorded } from '../kit/history.js';
import { startDestinations, type Destinations } from './destinations.js';
import type { KillPoint } from './kill-point.js';
import { tally, type Tally } from './tally.js';

/** What the worker was doing when it was killed; `hand-over` is anything between two activities. */
export type KilledIn = 'model' | 'tool' | 'hand-over';

export interface Killed extends Tally {
  readonly killedIn: KilledIn;
  readonly completed: boolean;
  readonly lost: number;
  readonly doubled: number;
}

/** A run that is held in its first model call on one worker, while a second worker stands by. */
export interface ReadyRun {
  /** Releases the run, kills its worker at the point, and returns how the run ended. */
  go(point: KillPoint): Promise<Killed>;
}

/** Prepares a run. When this resolves, the workers are up, so that their start is not measured. */
export async function prepareRun(bench: Bench, script: Script): Promise<ReadyRun> {
  const destinations = await startDestinations();
  const env = {
    QUEUE: `kill-${randomUUID()}`,
    LEDGER: destinations.ledgerUrl,
    OPENAI_BASE_URL: destinations.modelUrl,
  };
  const first = await bench.worker('perdure', env);
  const handle = await bench.client.workflow.start('agent', {
    taskQueue: env.QUEUE,
    workflowId: env.QUEUE,
    args: [{ agent: 'ledger', message: openingMessage(script) }],
  });
  await destinations.held;
  const second = await bench.worker('perdure', env);
  const run: Run = { script, destinations, handle, first };
  return {
    async go(point) {
      const killed = await killAndWatch(run, point);
      await Promise.all([second.kill(), destinations.close()]);
      return killed;
    },
  };
}

interface Run {
  readonly script: Script;
  readonly destinations: Destinations;
  readonly handle: WorkflowHandle;
  readonly first: BenchWorker;
}

async function killAndWatch(run: Run, point: KillPoint): Promise<Killed> {
  const { script, destinations, handle, first } = run;
  const arrived = destinations.arrived(point.arrival);
  destinations.release();
  await arrived;
  // The delay itself was drawn at random; it does not wait for anything.
  await pause(point.delayMs);
  const killedIn = whereabouts(destinations);
  const killedAt = Date.now();
  await first.kill();
  const outcome: unknown = await handle.result();
  const history = await handle.fetchHistory();
  const { modelCalls, toolAttempts } = destinations;
  return {
    killedIn,
    completed: isObject(outcome) && outcome['status'] === 'completed',
    ...tally(history, { killedAt, modelCalls, toolAttempts }),
    ...misrecorded(history, script),
  };
}

function whereabouts({ inFlight }: Destinations): KilledIn {
  if (inFlight.tool > 0) return 'tool';
  return inFlight.model > 0 ? 'model' : 'hand-over';
}
