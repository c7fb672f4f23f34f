import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { OpenRequest } from '../../client/memo-requests.js';
import { awaitsAgent, requestsBelow } from '../../client/status-below.js';
import { describeRun } from '../../history/read-run.js';
import type { Projection } from '../../history/projection.js';

export interface BelowOptions {
  /** The id of the calling run. */
  readonly id: string;
  /** Returns the run as last read; null before the first read. */
  readonly view: () => Projection | null;
  /** Returns whether these requests end the watch. */
  readonly counts: (request: OpenRequest) => boolean;
  readonly signal: AbortSignal;
}

/**
 * The first wait before a query; the history of a run does not show the requests of called runs.
 */
const FIRST_MS = 1_000;
const MAX_DELAY_MS = 10_000;

/**
 * Resolves with the requests of called runs as soon as some of them count; with none when the
 * signal aborts. Queries the server only while a called agent works for the run, and less often
 * over time.
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
    waitMs = Math.min(MAX_DELAY_MS, waitMs * 1.5);
    const found = await readBelow(client, id);
    const counted = found.filter(counts);
    if (counted.length > 0) return counted;
  }
  return [];
}

/** Returns none if the server does not answer; the watch of the run reports that. */
async function readBelow(client: Client, id: string): Promise<readonly OpenRequest[]> {
  try {
    return await requestsBelow(client, { id, description: await describeRun(client, id) });
  } catch {
    return [];
  }
}
