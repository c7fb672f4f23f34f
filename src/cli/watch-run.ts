import { isGrpcServiceError, type Client } from '@temporalio/client';
import { followRun, type FollowedRun } from '../client/follow.js';
import type { Projection } from '../client/projection.js';
import { NoServerError } from '../server/server-error.js';
import type { CliContext } from './context.js';
import type { Hosting } from './hosting.js';
import { palette } from './output.js';
import { adviceFor } from './open-run.js';
import { openScreen } from './screen.js';
import { runHeader } from './run-header.js';
import { createStepTeller, recent, type Cures } from './step-lines.js';
import { startTicker } from './ticker.js';

export interface Watch {
  readonly id: string;
  readonly runId: string;
  /** Of the run, wherever the command's own options point. */
  readonly taskQueue: string;
  readonly hosting: Hosting;
  /** Settles when somebody works on the queue, or nobody can. */
  readonly ready: Promise<void>;
  readonly interrupt: AbortSignal;
  /** Leave when the run stands still until somebody does something. */
  readonly leaveWhenWaiting: boolean;
  /** The run as it was when it was joined; null for one that has just been started. */
  readonly joined: Projection | null;
  /** Blocks up to this event of the history are being tried again. */
  readonly retriedUpTo: number;
}

/** How the watching ended; `last` is null when not even the start was seen. */
export type WatchEnd =
  | { readonly type: 'ended' | 'waiting'; readonly last: FollowedRun }
  | { readonly type: 'interrupted'; readonly last: FollowedRun | null };

/**
 * Shows a run's progress until it ends, waits, or somebody interrupts. Rejects when the server stays
 * away or the own worker dies.
 */
export async function watchRun(
  context: CliContext,
  client: Client,
  watch: Watch,
): Promise<WatchEnd> {
  const paint = palette(context.color);
  const screen = await openScreen(context);
  const header = runHeader(await context.server(), watch.id, paint);
  const tell = createStepTeller(paint, await curesFor(context, watch));
  const broken = new AbortController();
  const giveUp = (error: unknown): void => broken.abort(error);
  watch.ready.catch(giveUp);
  let last: FollowedRun | null = null;
  const ticker = startTicker(context, client, {
    ...watch,
    screen,
    paint,
    header,
    giveUp,
    view: () => last?.view ?? null,
  });
  const { id, runId, interrupt, hosting } = watch;
  const faults = AbortSignal.any([broken.signal, hosting.died]);
  const signal = AbortSignal.any([interrupt, faults]);
  try {
    if (watch.joined !== null) {
      header.show(watch.joined, screen);
      for (const line of recent(tell(watch.joined), paint)) screen.line(line);
    }
    for await (const followed of followRun(client, { id, runId, signal })) {
      const { view } = followed;
      last = followed;
      header.show(view, screen);
      for (const line of tell(view)) screen.line(line);
      ticker.heard();
      if (view.ended !== null && view.ended.how !== 'continued') return { type: 'ended', last };
      if (watch.leaveWhenWaiting && waits(view, watch)) return { type: 'waiting', last };
    }
    if (faults.aborted) throw faults.reason;
    return { type: 'interrupted', last };
  } catch (error) {
    throw isGrpcServiceError(error) ? await serverGone(context, watch, error) : error;
  } finally {
    ticker.stop();
    screen.close();
  }
}

/** Whether something of the run stands still that nobody has been told to try again. */
function waits(view: Projection, { joined, retriedUpTo }: Watch): boolean {
  // A history is told from its beginning: what stood still long ago may have been mended since.
  if (view.lastEvent < (joined?.lastEvent ?? 0)) return false;
  return [...view.blocked.values()].some(({ since }) => since > retriedUpTo);
}

async function curesFor(context: CliContext, watch: Watch): Promise<Cures> {
  const { id, leaveWhenWaiting } = watch;
  const resolving = await adviceFor(context, watch, ['resolve', id, 'CALL', '--as']);
  return {
    // The choice is for reading, so it is not quoted.
    settle: (call) => resolving.replace(' CALL --as', ` ${call} --as happened|retry|abandon`),
    resume: leaveWhenWaiting ? null : await adviceFor(context, watch, ['resume', id]),
  };
}

async function serverGone(context: CliContext, watch: Watch, cause: Error): Promise<NoServerError> {
  const { address } = await context.server();
  const next = await adviceFor(context, watch, ['attach', watch.id]);
  const message =
    `The Temporal server at ${address} does not answer any more (${cause.message}). ` +
    `What the run has recorded is kept there; when the server is back: ${next}`;
  return new NoServerError(message, { cause });
}
