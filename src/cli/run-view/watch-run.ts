import { CommandError } from '../exit-codes.js';
import { isGrpcServiceError, type Client } from '@temporalio/client';
import { followSegments, type FollowedRun } from '../../history/follow-run.js';
import type { Projection } from '../../history/projection.js';
import { waitingFor } from '../../history/waiting-for.js';
import { reached, type FollowTarget } from '../../history/follow-target.js';
import { visible } from '../../core/text/summaries.js';
import type { FinishedTurn } from '../../core/state.js';
import type { StreamEvent } from '../../live/stream-events.js';
import type { CliContext } from '../context.js';
import type { Hosting } from '../hosting/hosting.js';
import { palette } from '../format/output.js';
import { nextCommandFor } from '../reports/next-command.js';
import { openScreen } from './screen.js';
import { runHeader, type RunHeader } from '../reports/run-header.js';
import { createStepLines, lastLines, type Fixes } from './step-lines.js';
import { startTicker } from './ticker.js';
import { createLiveText } from './live-text.js';
import { NoServerError } from '../../core/errors.js';
import type { OpenRequest } from '../../client/memo-requests.js';
import { awaitsOnlyAgents, isIdle } from '../../client/status-below.js';
import { viewedRequests } from '../requests/open-requests.js';
import { watchBelow } from '../requests/watch-below.js';

export interface Watch {
  readonly id: string;
  readonly runId: string;
  /** The task queue of the run, which may differ from the one in the options. */
  readonly taskQueue: string;
  readonly hosting: Hosting;
  /** Resolves when a worker serves the queue; rejects if none can. */
  readonly ready: Promise<void>;
  readonly interrupt: AbortSignal;
  /** Stop watching when the run waits for a person. */
  readonly leaveWhenWaiting: boolean;
  /** Digests of the requests that the person at the terminal has seen; null without a person. */
  readonly seen: ReadonlySet<string> | null;
  readonly until: FollowTarget;
  /** The run as it was when the command joined it; null for a run that was just started. */
  readonly joined: Projection | null;
  /** Do not show the past of a joined run again. */
  readonly knowsPast?: boolean;
  /** Blocks up to this event of the joined segment are being retried. */
  readonly retriedUpTo: number;
  /** Do not show the header of the run again. */
  readonly knowsHeader?: boolean;
}

/** How watching ended. `last` is null if not even the start of the run was read. */
export type WatchEnd =
  | { readonly type: 'ended'; readonly last: FollowedRun }
  /** `below`: the requests of the runs of called agents that the run waits for. */
  | { readonly type: 'waiting'; readonly last: FollowedRun; readonly below: readonly OpenRequest[] }
  /** There are requests that the person at the terminal has not seen. */
  | { readonly type: 'requests'; readonly last: FollowedRun; readonly requests: readonly Unseen[] }
  | { readonly type: 'turn-ended'; readonly last: FollowedRun; readonly ended: FinishedTurn }
  | { readonly type: 'interrupted'; readonly last: FollowedRun | null };

const NO_HEADER: RunHeader = { show: () => undefined };

/** A request of a run, or of a run below it. */
export interface Unseen {
  readonly run: string;
  readonly id: string;
  readonly digest: string;
}

/**
 * Shows a run's progress until the run or the followed turn ends, until it waits, or until an
 * interrupt. Throws if the server stays unavailable or our worker dies.
 */
export async function watchRun(
  context: CliContext,
  client: Client,
  watch: Watch,
): Promise<WatchEnd> {
  const paint = palette(context.color);
  const screen = await openScreen(context);
  const header = watch.knowsHeader ? NO_HEADER : runHeader(await context.server(), watch.id, paint);
  const stepLines = createStepLines(paint, await fixesFor(context, watch));
  const broken = new AbortController();
  const giveUp = (error: unknown): void => broken.abort(error);
  watch.ready.catch(giveUp);
  const { id, runId, interrupt, hosting, joined } = watch;
  let last: FollowedRun | null = joined && { runId, view: joined };
  const view = (): Projection | null => last?.view ?? null;
  const liveText = createLiveText(paint);
  const ticker = startTicker(context, client, {
    ...watch,
    screen,
    paint,
    header,
    giveUp,
    view,
    liveText,
  });
  const closed = new AbortController();
  const faults = AbortSignal.any([broken.signal, hosting.died]);
  const signal = AbortSignal.any([interrupt, faults, closed.signal]);
  let below: readonly OpenRequest[] = [];
  const lookBelow = async (): Promise<void> => {
    const counts = ({ digest }: OpenRequest): boolean => countsBelow(watch, view(), digest);
    below = await watchBelow(client, { id, view, counts, signal });
    if (below.length > 0) closed.abort();
  };
  try {
    if (joined !== null) {
      header.show(joined, screen);
      const past = stepLines(upTo(watch.until, joined));
      for (const line of watch.knowsPast ? [] : lastLines(past, paint)) screen.line(line);
    }
    if (context.isTty) {
      const onEvent = (event: StreamEvent): void => {
        if (liveText.add(event)) ticker.draw();
      };
      const unreachable = (why: string): void => screen.line(why);
      void subscribe(context, client, { id, signal: closed.signal, onEvent, unreachable });
    }
    if (watch.leaveWhenWaiting || watch.seen !== null) void lookBelow();
    for await (const followed of followSegments(client, { id, runId, signal })) {
      // The history is read from its beginning.
      if (followed.runId === runId && followed.view.lastEvent < (joined?.lastEvent ?? 0)) continue;
      last = followed;
      header.show(followed.view, screen);
      for (const line of stepLines(upTo(watch.until, followed.view))) screen.line(line);
      ticker.onProgress();
      const end = await endOfWatch(context, watch, followed);
      if (end !== null) return end;
    }
    if (faults.aborted) throw faults.reason;
    if (below.length === 0 || last === null) return { type: 'interrupted', last };
    return watch.seen === null
      ? { type: 'waiting', last, below }
      : { type: 'requests', last, requests: below };
  } catch (error) {
    throw isGrpcServiceError(error) ? await serverGone(context, watch, error) : error;
  } finally {
    closed.abort();
    ticker.stop();
    screen.close();
  }
}

/** Omits the messages of turns after the followed one. */
function upTo(until: FollowTarget, view: Projection): Projection {
  if (until === 'end') return view;
  return { ...view, messages: view.messages.filter(({ turn }) => turn <= until.turn) };
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
      throw new CommandError(
        'unavailable',
        `turn ${end.turn} of run ${visible(watch.id)} ended long ago, and the run no longer keeps its outcome; read its messages with: ${read}`,
      );
    }
    case undefined:
      break;
  }
  const unseen = unseenIn(last.view, watch);
  if (unseen.length > 0) return { type: 'requests', last, requests: unseen };
  return watch.leaveWhenWaiting && waits(last, watch) ? { type: 'waiting', last, below: [] } : null;
}

/** Returns the requests that the person at the terminal, if any, has not seen. */
function unseenIn(view: Projection, { id: run, seen }: Watch): readonly Unseen[] {
  if (seen === null) return [];
  return viewedRequests(view, run)
    .filter(({ digest, checking }) => !seen.has(digest) && checking !== true)
    .map(({ id, digest }) => ({ run, id, digest }));
}

/**
 * Returns whether a request below the run ends the watch: a person has not seen it, or the run does
 * nothing else.
 */
function countsBelow({ seen }: Watch, view: Projection | null, digest: string): boolean {
  return seen === null ? view !== null && awaitsOnlyAgents(view) : !seen.has(digest);
}

/**
 * Returns whether the run waits for a person: it is paused, it does nothing until a request is
 * decided, or it is blocked by something that is not being retried.
 */
function waits({ runId, view }: FollowedRun, watch: Watch): boolean {
  if (isIdle(view) && viewedRequests(view, watch.id).length > 0) return true;
  const retriedUpTo = runId === watch.runId ? watch.retriedUpTo : 0;
  if ([...view.blocked.values()].some(({ since }) => since > retriedUpTo)) return true;
  return waitingFor(view)?.type === 'paused';
}

async function fixesFor(context: CliContext, watch: Watch): Promise<Fixes> {
  const { id, leaveWhenWaiting } = watch;
  return {
    run: id,
    resume: leaveWhenWaiting ? null : await nextCommandFor(context, watch, ['resume', id]),
  };
}

async function serverGone(context: CliContext, watch: Watch, cause: Error): Promise<NoServerError> {
  const { address } = await context.server();
  const next = await nextCommandFor(context, watch, ['attach', watch.id]);
  const message =
    `The Temporal server at ${address} no longer answers (${cause.message}). ` +
    `It keeps everything that the run has recorded. When the server is back, run: ${next}`;
  return new NoServerError(message, { cause });
}

/** Subscribes to the live stream of a run, as far as its workers serve it. Never throws. */
async function subscribe(
  { home, env }: Pick<CliContext, 'home' | 'env'>,
  client: Client,
  {
    id,
    signal,
    onEvent,
    unreachable,
  }: {
    readonly id: string;
    readonly signal: AbortSignal;
    readonly onEvent: (event: StreamEvent) => void;
    readonly unreachable: (why: string) => void;
  },
): Promise<void> {
  try {
    const [{ createRunStreams }, { liveWorkers }, { readLiveHosts }] = await Promise.all([
      import('../../live/run-streams.js'),
      import('../../live/live-workers.js'),
      import('../../live/live-hosts.js'),
    ]);
    const feeds = createRunStreams(client, {
      sources: [liveWorkers(home, { hosts: readLiveHosts(env), unreachable })],
    });
    for await (const event of feeds.read(id, { after: 'now', signal })) onEvent(event);
  } catch {
    // The caller follows the run itself and reports errors.
  }
}
