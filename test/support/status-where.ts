import { setTimeout as pause } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { isOpenStatus, type RunStatus } from '../../src/core/state/status.js';
import { statusQuery } from '../../src/workflows/messages/definitions.js';

const LIMIT_MS = 30_000;
/** Until a status is asked for again that no worker gave. */
const PAUSE_MS = 50;

/**
 * Resolves with the status of a run as soon as it fits. Asks for it at first and after new events, since
 * without them it stays as it is: each question costs server and worker 5 ms of CPU time. Rejects
 * if it does not fit in time.
 */
export async function statusWhere(
  handle: WorkflowHandle,
  fits: (status: RunStatus) => boolean,
): Promise<RunStatus> {
  const deadline = Date.now() + LIMIT_MS;
  let events = newEvents(handle, deadline);
  let seen: unknown;
  for (;;) {
    const { done } = await events.next();
    const status = await statusBy(handle, deadline).catch((error: unknown) => void (seen = error));
    if (status && fits(status)) return status;
    seen = status ?? seen;
    if ((status && !isOpenStatus(status.status)) || Date.now() > deadline) break;
    if (done !== true) continue;
    // The run that was followed has ended, and a new one has its id.
    await pause(PAUSE_MS);
    events = newEvents(handle, deadline);
  }
  const shown = seen instanceof Error ? seen.message : JSON.stringify(seen);
  throw new Error(`the status of ${handle.workflowId} does not fit: ${shown}`, { cause: seen });
}

/** Asks until a worker answers: one may have ended, and another be about to begin. */
async function statusBy(handle: WorkflowHandle, deadline: number): Promise<RunStatus> {
  for (;;) {
    try {
      return await handle.client.withDeadline(deadline, () => handle.query(statusQuery));
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await pause(PAUSE_MS);
    }
  }
}

/** Yields at once, and whenever the run has new events, by long polling. Ends with the run, or at the deadline. */
async function* newEvents(
  { client, workflowId }: WorkflowHandle,
  deadline: number,
): AsyncGenerator<void, void, undefined> {
  const { workflowService, options } = client;
  for (let token: Uint8Array | undefined; ;) {
    const page = await client
      .withDeadline(deadline, () =>
        workflowService.getWorkflowExecutionHistory({
          namespace: options.namespace,
          execution: { workflowId },
          waitNewEvent: true,
          ...(token && { nextPageToken: token }),
        }),
      )
      .catch((error: unknown) => {
        if (Date.now() > deadline) return null;
        throw error;
      });
    if (page === null) return;
    const events = page.history?.events ?? [];
    token = page.nextPageToken.length > 0 ? page.nextPageToken : undefined;
    const isContinued = events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
    if (token === undefined && !isContinued) return;
    // The next segment is the latest one now.
    if (events.length > 0 && !isContinued) yield;
  }
}
