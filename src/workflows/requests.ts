import { CancellationScope, sleep, upsertMemo, workflowInfo } from '@temporalio/workflow';
import { askingWork, openRequests } from '../core/requests/open-requests.js';
import type { AskingWork } from '../core/work/work.js';
import { requestMemo } from '../core/requests/memo.js';
import { MAX_DURABLE_MS } from '../core/text/duration.js';
import { notifyRequest } from './activities.js';
import { startDeadlineTimer } from './deadline-timer.js';
import { recordNow, type RunContext } from './run-context.js';

/**
 * Publishes the open requests if they have changed. It updates the memo, which an inbox reads
 * without a worker, and the timer for the next expiry, and sends notifications.
 */
export function publishRequests(run: RunContext): void {
  const asking = askingWork(run.state);
  const ids = asking.map(shownAs).join();
  if (ids === run.shownRequests) return;
  const before = new Set(run.shownRequests.split(','));
  const wasAtLimit = before.size > asking.length && run.shownRequests.includes(LIMIT);
  run.shownRequests = ids;
  startExpiryTimer(run);
  // A raised limit may have moved the deadline.
  if (wasAtLimit) startDeadlineTimer(run);
  // A run without requests is found by its status, so its memo may be outdated.
  if (ids !== '') {
    const requests = openRequests(run.state, workflowInfo().workflowId);
    upsertMemo({ ...requestMemo(requests) });
  }
  for (const work of asking) if (!before.has(shownAs(work))) notify(run, work.request.id);
  run.publishStatus();
}

const LIMIT = '=limit';

/** Returns the name of a request in a segment's context. */
export function shownAs({ request }: AskingWork): string {
  return request.kind === 'limit' ? `${request.id}${LIMIT}` : request.id;
}

/** Continues the work that a new segment received: the expiry timer and the unsent notices. */
export function continueRequests(run: RunContext): void {
  run.shownRequests = askingWork(run.state).map(shownAs).join();
  startExpiryTimer(run);
  for (const { request } of askingWork(run.state)) {
    if (!request.notified) notify(run, request.id);
  }
}

/** Starts the timer for the next request that expires, and replaces the previous timer. */
function startExpiryTimer(run: RunContext): void {
  const times = askingWork(run.state).flatMap(({ request }) => request.expiresAt ?? []);
  const at = times.length === 0 ? null : Math.min(...times);
  if (at === (run.expiryTimer?.at ?? null)) return;
  run.expiryTimer?.scope.cancel();
  run.expiryTimer = null;
  if (at === null || !(at - Date.now() <= MAX_DURABLE_MS)) return;
  const scope = new CancellationScope();
  run.expiryTimer = { at, scope };
  scope
    .run(async () => {
      await sleep(Math.max(1, at - Date.now()), { summary: 'a request expires' });
      recordNow(run, { type: 'clock' });
    })
    .catch(() => undefined);
}

/**
 * Calls the worker's `notify` for a request. The run does not wait for it: the next segment sends a
 * lost notice again, under the same id.
 */
function notify(run: RunContext, id: string): void {
  const { config, turn } = run.state;
  if (!config.decisions?.notify) return;
  const request = openRequests(run.state, workflowInfo().workflowId).find((one) => one.id === id);
  if (request === undefined) return;
  const { arguments: _, argumentsBlob: __, parsed: ___, parsedBlob: ____, ...shown } = request;
  const input = { request: shown, agent: config.definition.name, turn: turn.number };
  notifyRequest(input).then(
    () =>
      recordNow(run, {
        type: 'completed',
        task: { activity: 'notifyRequest', input },
        result: null,
      }),
    () => undefined,
  );
}
