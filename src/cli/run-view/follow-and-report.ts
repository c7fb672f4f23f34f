import { once } from 'node:events';
import type { CliContext } from '../context.js';
import type { ExitCode } from '../exit-codes.js';
import { reportEnd, reportTurn } from '../reports/report-end.js';
import {
  reportInterrupted,
  reportOpen,
  reportWaiting,
  type LeftRun,
} from '../reports/report-pause.js';
import { uiLink } from '../reports/run-header.js';
import { watchRun, type Watch, type WatchEnd } from './watch-run.js';

/** How a person wants to see a run through. */
export interface FollowOptions {
  /** `--no-wait` makes it false. */
  readonly wait: boolean;
  readonly ui?: boolean;
}

export interface RunToFollow extends Omit<Watch, 'leaveWhenWaiting'> {
  /** Of the message that was sent to it. */
  readonly messageId?: string;
}

type ReachedEnd = Extract<WatchEnd, { type: 'ended' | 'turn-ended' }>;

/** Follows a run as far as is wished, and says how it stands. */
export async function followAndReport(
  context: CliContext,
  run: RunToFollow,
  { wait, ui = false }: FollowOptions,
): Promise<ExitCode> {
  const { id, hosting, interrupt } = run;
  const end = await watchRun(context, await context.client(), {
    ...run,
    leaveWhenWaiting: !wait || !context.isTty,
  });
  // Who does the work may not have been found out yet.
  if (end.type === 'waiting') await run.ready;
  const runId = end.last?.runId ?? run.runId;
  const { taskQueue } = run;
  const left = { id, runId, taskQueue, last: end.last, wasHosting: hosting.isHosting };
  if (end.type === 'interrupted') return await reportInterrupted(context, left);
  if (end.type === 'waiting') return await reportWaiting(context, left);
  const code = await reportReached(context, run, { end, left });
  if (ui && context.isTty && hosting.isHosting) await stayUp(context, id, interrupt);
  return code;
}

/** The run has come to where it was to be followed. */
async function reportReached(
  context: CliContext,
  { id, messageId }: RunToFollow,
  given: { readonly end: ReachedEnd; readonly left: LeftRun },
): Promise<ExitCode> {
  const { end, left } = given;
  const { runId, view } = end.last;
  if (end.type === 'ended') return await reportEnd(context, { id, runId, view });
  const code = await reportTurn(context, { ...end.ended, id, runId, view, messageId });
  await reportOpen(context, left);
  return code;
}

/** The embedded server and the worker are there to be looked at until a key is pressed. */
async function stayUp(context: CliContext, id: string, interrupt: AbortSignal): Promise<void> {
  context.note(uiLink(await context.server(), id) ?? 'No Temporal UI is known.');
  context.note('Press a key to leave.');
  const { stdin } = process;
  stdin.setRawMode(true);
  try {
    await once(stdin, 'data', { signal: interrupt });
  } catch {
    // An interrupt leaves, too.
  } finally {
    stdin.setRawMode(false);
  }
}
