import { once } from 'node:events';
import { toRunStatus } from '../../client/status.js';
import { readRun } from '../../history/read-run.js';
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
import { promptForDecision } from '../requests/prompt.js';
import { watchRun, type Watch, type WatchEnd } from './watch-run.js';

/** How far a command follows a run. */
export interface FollowOptions {
  /** False for `--no-wait`. */
  readonly wait: boolean;
  /** Stay up until a key is pressed. */
  readonly ui?: boolean;
}

export interface RunToFollow extends Omit<Watch, 'leaveWhenWaiting' | 'seen'> {
  /** The id of the message that the command sent to the run. */
  readonly messageId?: string;
}

type ReachedEnd = Extract<WatchEnd, { type: 'ended' | 'turn-ended' }>;

/** Follows a run as far as the options specify, and reports its state. */
export async function followAndReport(
  context: CliContext,
  run: RunToFollow,
  { wait, ui = false }: FollowOptions,
): Promise<ExitCode> {
  const { id, hosting, interrupt } = run;
  const end = await watchWithPrompts(context, run, { wait });
  // It may not be known yet which worker serves the run.
  if (end.type === 'waiting') await run.ready;
  const runId = end.last?.runId ?? run.runId;
  const { taskQueue } = run;
  const left = { id, runId, taskQueue, last: end.last, wasHosting: hosting.isHosting };
  if (end.type === 'interrupted') return await reportInterrupted(context, left);
  if (end.type === 'waiting') return await reportWaiting(context, { ...left, below: end.below });
  const code = await reportReached(context, run, { end, left });
  if (ui && context.isTty && hosting.isHosting) await stayUp(context, id, interrupt);
  return code;
}

/**
 * Watches a run. If a person is at the terminal, each request is shown to them once, and they may
 * decide there; the run is watched again after that.
 */
async function watchWithPrompts(
  context: CliContext,
  run: RunToFollow,
  { wait }: FollowOptions,
): Promise<Exclude<WatchEnd, { type: 'requests' }>> {
  const client = await context.client();
  const leaveWhenWaiting = !wait || !context.isTty;
  const seen = new Set<string>();
  let watch: Watch = { ...run, leaveWhenWaiting, seen: leaveWhenWaiting ? null : seen };
  for (;;) {
    const end = await watchRun(context, client, watch);
    if (end.type !== 'requests') return end;
    for (const { run: id, digest } of end.requests) {
      seen.add(digest);
      const reading = await readRun(client, id);
      const request = toRunStatus(reading, Date.now()).pending.find(
        (open) => open.digest === digest,
      );
      // Another person may have decided in the meantime.
      if (request === undefined || run.interrupt.aborted) continue;
      await promptForDecision(context, client, { run: reading, request }, run);
    }
    const { runId, view: joined } = end.last;
    const retriedUpTo = runId === watch.runId ? watch.retriedUpTo : 0;
    watch = { ...watch, runId, joined, retriedUpTo, knowsPast: true, knowsHeader: true };
  }
}

/** Reports a run that has reached the target. */
async function reportReached(
  context: CliContext,
  { id, messageId }: RunToFollow,
  result: { readonly end: ReachedEnd; readonly left: LeftRun },
): Promise<ExitCode> {
  const { end, left } = result;
  const { runId, view } = end.last;
  if (end.type === 'ended') return await reportEnd(context, { id, runId, view });
  const code = await reportTurn(context, { ...end.ended, id, runId, view, messageId });
  await reportOpen(context, left);
  return code;
}

/** Keeps the embedded server and the worker up until a key is pressed. */
async function stayUp(context: CliContext, id: string, interrupt: AbortSignal): Promise<void> {
  context.note(uiLink(await context.server(), id) ?? 'No Temporal UI is known.');
  context.note('Press a key to exit.');
  const { stdin } = process;
  stdin.setRawMode(true);
  try {
    await once(stdin, 'data', { signal: interrupt });
  } catch {
    // An interrupt also ends the wait.
  } finally {
    stdin.setRawMode(false);
  }
}
