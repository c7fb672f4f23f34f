import type { Client } from '@temporalio/client';
import { livePollers, listPollers, type Poller } from '../../temporal/pollers.js';
import type { RunStatusName } from '../../core/status.js';
import { visible } from '../../core/text/summaries.js';
import type { CliContext } from '../context.js';
import { formatAgo, formatSpan } from '../format/format-time.js';

/** Whether a worker seems to serve a task queue. */
export interface WorkerPresence {
  readonly taskQueue: string;
  readonly isUp: boolean;
  /** `last poll 5 s ago by 123@host`, or how long no worker has polled. */
  readonly text: string;
}

/**
 * Reads the pollers of a task queue. It does not probe them: a worker that was just lost still
 * counts.
 */
export async function readWorkerPresence(
  client: Client,
  taskQueue: string,
): Promise<WorkerPresence> {
  const pollers = await listPollers(client, { namespace: client.options.namespace, taskQueue });
  const now = Date.now();
  const [newest, ...others] = livePollers(pollers, now);
  if (newest === undefined) return { taskQueue, isUp: false, text: absenceText(pollers, now) };
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  const text = `last poll ${formatAgo(newest.lastPollAt, now)} by ${visible(newest.identity)}${more}`;
  return { taskQueue, isUp: true, text };
}

/**
 * Whether a run with this status makes no progress without a worker. A run that waits for a person
 * or is paused makes none anyway, and the command that continues it says what it needs.
 */
export function needsWorker({ status }: { readonly status: RunStatusName }): boolean {
  return status === 'working' || status === 'waiting_time' || status === 'blocked';
}

/** Notes that no worker is running, and the command that starts one. */
export function noteMissingWorker(
  { note }: Pick<CliContext, 'note'>,
  { isUp, taskQueue, text }: WorkerPresence,
  command: string,
): void {
  if (isUp) return;
  note(
    `No worker is running on task queue "${visible(taskQueue)}": ${text}. Start one with: ${command}`,
  );
}

function absenceText([last]: readonly Poller[], now: number): string {
  if (last === undefined) return 'none has polled in the last minutes';
  const { identity, lastPollAt, gone } = last;
  if (gone)
    return `${visible(identity)} has ended; its last poll was ${formatAgo(lastPollAt, now)}`;
  return `none has polled for ${formatSpan(now - lastPollAt)} (the last was ${visible(identity)})`;
}
