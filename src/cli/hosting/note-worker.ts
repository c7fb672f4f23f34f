import type { Client } from '@temporalio/client';
import { livePollers, listPollers, type Poller } from '../../temporal/pollers.js';
import { visible } from '../../core/text/summaries.js';
import type { CliContext } from '../context.js';
import { formatAgo, formatSpan } from '../format/format-time.js';

/** Whether anybody may be there to do the work. */
export interface WorkerPresence {
  readonly taskQueue: string;
  readonly isUp: boolean;
  /** `last poll 5 s ago by 123@host`, or why there is none. */
  readonly text: string;
}

/** Looks at the task queue's pollers; nobody is asked to do anything, so a worker just lost may be missed. */
export async function readWorkerPresence(client: Client, taskQueue: string): Promise<WorkerPresence> {
  const pollers = await listPollers(client, { namespace: client.options.namespace, taskQueue });
  const now = Date.now();
  const [newest, ...others] = livePollers(pollers, now);
  if (newest === undefined) return { taskQueue, isUp: false, text: absence(pollers, now) };
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  const text = `last poll ${formatAgo(newest.lastPollAt, now)} by ${visible(newest.identity)}${more}`;
  return { taskQueue, isUp: true, text };
}

/** Says on stderr that nobody is there, and the commands that bring somebody. */
export function noteMissingWorker(
  { say }: Pick<CliContext, 'say'>,
  { isUp, taskQueue, text }: WorkerPresence,
  cures: readonly string[],
): void {
  if (isUp) return;
  const cure = cures.length === 0 ? '' : ` Start one with: ${cures.join('  or: ')}`;
  say(`no worker is up on task queue "${visible(taskQueue)}": ${text}.${cure}`);
}

function absence([last]: readonly Poller[], now: number): string {
  if (last === undefined) return 'none has polled it in the last minutes';
  const { identity, lastPollAt, gone } = last;
  if (gone) return `${visible(identity)} has ended, its last poll was ${formatAgo(lastPollAt, now)}`;
  return `none has polled it for ${formatSpan(now - lastPollAt)} (the last was ${visible(identity)})`;
}
