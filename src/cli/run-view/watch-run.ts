import { isGrpcServiceError, type Client } from '@temporalio/client';
import { followRun, type FollowedRun } from '../../history/follow-run.js';
import type { Projection } from '../../history/projection.js';
import { waitingFor } from '../../history/waiting-for.js';
import { reached, type FollowTarget } from '../../history/follow-target.js';
import { visible } from '../../core/text/summaries.js';
import type { EndedTurn } from '../../core/state.js';
import type { StreamEvent } from '../../live/stream-events.js';
import type { CliContext } from '../context.js';
import type { Hosting } from '../hosting/hosting.js';
import { palette } from '../format/output.js';
import { nextCommandFor } from '../open-run.js';
import { openScreen } from './screen.js';
import { runHeader } from '../reports/run-header.js';
import { createStepLines, recent, type Fixes } from './step-lines.js';
import { startTicker } from './ticker.js';
import { createLiveText } from './live-text.js';
import { NoServerError } from '../../core/errors.js';

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
  readonly until: FollowTarget;
  /** The run as it was when it was joined; null for one that has just been started. */
  readonly joined: Projection | null;
  /** The past of a run that is joined is known; it is not told again. */
  readonly knowsPast?: boolean;
  /** Blocks up to this event of the segment that was joined are being tried again. */
  readonly retriedUpTo: number;
}

/** How the watching ended; `last` is null when not even the start was seen. */
export type WatchEnd =
  | { readonly type: 'ended'; readonly last: FollowedRun }
  | { readonly type: 'waiting'; readonly last: FollowedRun }
  | { readonly type: 'turn-ended'; readonly last: FollowedRun; readonly ended: EndedTurn }
  | { readonly type: 'interrupted'; readonly last: FollowedRun | null };

/**
 * Shows a run's progress until it, or the turn that is followed, ends, until it waits, or somebody
 * interrupts. Rejects when the server stays away or the own worker dies.
 */
export async function watchRun(
  context: CliContext,
  client: Client,
  watch: Watch,
): Promise<WatchEnd> {
  const paint = palette(context.color);
  const screen = await openScreen(context);
  const header = runHeader(await context.server(), watch.id, paint);
  const tell = createStepLines(paint, await fixesFor(context, watch));
  const broken = new AbortController();
  const giveUp = (error: unknown): void => broken.abort(error);
  watch.ready.catch(giveUp);
  const { id, runId, interrupt, hosting, joined } = watch;
  let last: FollowedRun | null = joined && { runId, view: joined };
  const writing = createLiveText(paint);
  const ticker = startTicker(context, client, {
    ...watch,
    screen,
    paint,
    header,
    giveUp,
    view: () => last?.view ?? null,
    writing,
  });
  const left = new AbortController();
  const faults = AbortSignal.any([broken.signal, hosting.died]);
  const signal = AbortSignal.any([interrupt, faults]);
  try {
    if (joined !== null) {
      header.show(joined, screen);
      const past = tell(upTo(watch.until, joined));
      for (const line of watch.knowsPast ? [] : recent(past, paint)) screen.line(line);
    }
    if (context.isTty) {
      const hear = (event: StreamEvent): void => {
        if (writing.hear(event)) ticker.draw();
      };
      void readAlong(context, client, { id, signal: left.signal, hear });
    }
    for await (const followed of followRun(client, { id, runId, signal })) {
      const { view } = followed;
      // A history is told from its beginning.
      if (followed.runId === runId && view.lastEvent < (joined?.lastEvent ?? 0)) continue;
      last = followed;
      header.show(view, screen);
      for (const line of tell(upTo(watch.until, view))) screen.line(line);
      ticker.heard();
      const end = await endOfWatch(context, watch, followed);
      if (end !== null) return end;
    }
    if (faults.aborted) throw faults.reason;
    return { type: 'interrupted', last };
  } catch (error) {
    throw isGrpcServiceError(error) ? await serverGone(context, watch, error) : error;
  } finally {
    left.abort();
    ticker.stop();
    screen.close();
  }
}

/** What is said in later turns than the one that is followed is not of interest. */
function upTo(until: FollowTarget, view: Projection): Projection {
  if (until === 'end') return view;
  return { ...view, said: view.said.filter(({ turn }) => turn <= until.turn) };
}

async function endOfWatch(
  context: CliContext,
  watch: Watch,
  last: FollowedRun,
): Promise<WatchEnd | null> {
  const end = reached(last.view, watch.until);
  switch (end?.type) {
    case 'run-ended':
      return { type: 'ended', last };
    case 'turn-ended':
      return { type: 'turn-ended', last, ended: end.ended };
    case 'forgotten': {
      const read = await nextCommandFor(context, watch, ['transcript', watch.id]);
      throw new Error(
        `turn ${end.turn} of run ${visible(watch.id)} is long over, and the run does not remember its outcome; what was said: ${read}`,
      );
    }
    case undefined:
      return watch.leaveWhenWaiting && waits(last, watch) ? { type: 'waiting', last } : null;
  }
}

/** Whether the run stands still until somebody does something that nobody is known to have done. */
function waits({ runId, view }: FollowedRun, watch: Watch): boolean {
  const tried = runId === watch.runId ? watch.retriedUpTo : 0;
  if ([...view.blocked.values()].some(({ since }) => since > tried)) return true;
  return waitingFor(view)?.type === 'paused';
}

async function fixesFor(context: CliContext, watch: Watch): Promise<Fixes> {
  const { id, leaveWhenWaiting } = watch;
  const resolving = await nextCommandFor(context, watch, ['resolve', id, 'CALL', '--as']);
  return {
    // The choice is for reading, so it is not quoted.
    settle: (call, decisions) => resolving.replace(' CALL --as', ` ${call} --as ${decisions}`),
    resume: leaveWhenWaiting ? null : await nextCommandFor(context, watch, ['resume', id]),
  };
}

async function serverGone(context: CliContext, watch: Watch, cause: Error): Promise<NoServerError> {
  const { address } = await context.server();
  const next = await nextCommandFor(context, watch, ['attach', watch.id]);
  const message =
    `The Temporal server at ${address} does not answer any more (${cause.message}). ` +
    `What the run has recorded is kept there; when the server is back: ${next}`;
  return new NoServerError(message, { cause });
}

/** Tells what is said in a run from now on, as far as its workers let others read along; never rejects. */
async function readAlong(
  { home, env }: Pick<CliContext, 'home' | 'env'>,
  client: Client,
  {
    id,
    signal,
    hear,
  }: {
    readonly id: string;
    readonly signal: AbortSignal;
    readonly hear: (event: StreamEvent) => void;
  },
): Promise<void> {
  try {
    const [{ createRunStreams }, { liveWorkers }, { readLiveHosts }] = await Promise.all([
      import('../../live/run-streams.js'),
      import('../../live/live-workers.js'),
      import('../../live/live-hosts.js'),
    ]);
    const feeds = createRunStreams(client, {
      sources: [liveWorkers(home, { hosts: readLiveHosts(env) })],
    });
    for await (const event of feeds.read(id, { after: 'now', signal })) hear(event);
  } catch {
    // Whoever follows the run itself tells what is wrong.
  }
}
