import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { OpenRequest } from '../../client/memo-requests.js';
import { awaitsAgent, requestsBelow } from '../../client/status-below.js';
import { describeRun } from '../../history/read-run.js';
import type { Projection } from '../../history/projection.js';

export interface BelowOptions {
  /** The id of the run above. */
  readonly id: string;
  /** Returns the run as it was last seen; null before that. */
  readonly view: () => Projection | null;
  /** Returns whether these requests end the watch. */
  readonly counts: (request: OpenRequest) => boolean;
  readonly signal: AbortSignal;
}

/** The history of a run shows nothing of the requests of the runs that it has called. */
const FIRST_MS = 1_000;
const LONGEST_MS = 10_000;

/**
 * Resolves with the requests below a run when there are some that count. Asks the server only while a called
 * agent works for the run, and more rarely the longer it does. Resolves with none when the signal aborts.
 */
export async function watchBelow(
  client: Client,
  { id, view, counts, signal }: BelowOptions,
): Promise<readonly OpenRequest[]> {
  let waitMs = FIRST_MS;
  while (!signal.aborted) {
    await pause(waitMs, undefined, { signal }).catch(() => undefined);
    const seen = view();
    if (signal.aborted) break;
    if (seen === null || !awaitsAgent(seen)) {
      waitMs = FIRST_MS;
      continue;
    }
    waitMs = Math.min(LONGEST_MS, waitMs * 1.5);
    const found = await readBelow(client, id);
    const counted = found.filter(counts);
    if (counted.length > 0) return counted;
  }
  return [];
}

/** The watch itself reports a server that does not answer. */
async function readBelow(client: Client, id: string): Promise<readonly OpenRequest[]> {
  try {
    return await requestsBelow(client, { id, description: await describeRun(client, id) });
  } catch {
    return [];
  }
}
