import { Client, type Connection } from '@temporalio/client';
import { livingRuns, type LivingRun } from './living-runs.js';
import { livePollers, readQueueState, type Build, type QueueState } from '../../temporal/pollers.js';
import { visible } from '../../core/text/summaries.js';
import { titleOf } from '../../worker/deployment.js';
import type { Place } from './place.js';

/** What the open runs wait for, and what polls: enough to say who gets nothing. */
export interface Routing {
  readonly runs: readonly LivingRun[];
  /** There are more open runs than were looked at. */
  readonly more: boolean;
  /** The configured one and those on which open runs are, with the pollers that live. */
  readonly queues: ReadonlyMap<string, QueueState>;
}

/** So many open runs, and so many queues of theirs, are looked at. */
const RUNS = 1_000;
const QUEUES = 50;

export async function readRouting(
  connection: Connection,
  { server: { namespace }, taskQueue }: Place,
): Promise<Routing> {
  const { runs, more } = await livingRuns(new Client({ connection, namespace }), RUNS);
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
  return visible(titleOf(build));
}
