import { Client, type Connection } from '@temporalio/client';
import { listOpenRuns, type OpenRun } from './open-runs.js';
import {
  livePollers,
  readQueueState,
  type Build,
  type QueueState,
} from '../../temporal/pollers.js';
import { visible } from '../../core/text/summaries.js';
import { deploymentTitle } from '../../worker/deployment.js';
import type { CheckTarget } from './place.js';

/** The running runs, and the workers that poll their task queues. */
export interface Routing {
  readonly runs: readonly OpenRun[];
  /** Whether there are more running runs than were read. */
  readonly more: boolean;
  /** The configured queue and the queues of running runs, with their live pollers. */
  readonly queues: ReadonlyMap<string, QueueState>;
}

/** The maximum numbers of running runs and of their queues that are read. */
const RUNS = 1_000;
const QUEUES = 50;

export async function readRouting(
  connection: Connection,
  { server: { namespace }, taskQueue }: CheckTarget,
): Promise<Routing> {
  const { runs, more } = await listOpenRuns(new Client({ connection, namespace }), RUNS);
  const names = [...new Set([taskQueue, ...runs.map((run) => run.taskQueue)])].slice(0, QUEUES);
  const now = Date.now();
  const states = await Promise.all(
    names.map(async (name) => {
      const state = await readQueueState(connection, { namespace, taskQueue: name });
      return [name, { ...state, pollers: livePollers(state.pollers, now) }] as const;
    }),
  );
  return { runs, more, queues: new Map(states) };
}

export function isPolledBy({ pollers }: QueueState, build: Build): boolean {
  return pollers.some((poller) => isSame(poller.build, build));
}

export function isSame(a: Build | null, b: Build | null): boolean {
  return a?.deploymentName === b?.deploymentName && a?.buildId === b?.buildId;
}

export function buildTitle(build: Build): string {
  return visible(deploymentTitle(build));
}
