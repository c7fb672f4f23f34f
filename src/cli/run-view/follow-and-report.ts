import { type Client, isGrpcServiceError } from '@temporalio/client';
import { type Below, NOTHING_BELOW, isIdle } from '../../client/below.js';
import type { FinishedTurn } from '../../core/state/state.js';
import { visible } from '../../core/state/summaries.js';
import {
  type FollowTarget,
  type FollowedRun,
  followSegments,
  isEnding,
  reached,
} from '../../history/follow-history.js';
import type { DurableStep } from '../../history/durable-steps.js';
import { createStepEmitter } from '../../history/emit-steps.js';
import { type Projection, waitingFor } from '../../history/projection.js';
import type { RunReading } from '../../history/read-run.js';
import type { StreamEvent } from '../../live/stream.js';
import { subscribe } from './subscribe.js';
import { type CliContext, CommandError, type ExitCode } from '../context.js';
import { lastLines, palette } from '../format/format.js';
import type { Hosting } from '../hosting/hosting.js';
import { serverGone } from '../hosting/server-notes.js';
import { untilPublished } from '../hosting/with-worker.js';
import { nextCommandFor, runnableText } from '../reports/next-command.js';
import {
  type RunHeader,
  reportEnd,
  reportInterrupted,
  reportOpen,
  reportTurn,
  reportWaiting,
  runHeader,
} from '../reports/report-run.js';
import { noteConsole, noteLaterConsole, stayUp } from '../reports/run-pages.js';
import { promptForDecision } from '../requests/decide-at-terminal.js';
import { isNothing, watchBelow } from '../requests/below.js';
import { columnsOf, viewedRequests } from '../requests/show-request.js';
import { createLiveText, openScreen } from './live-text.js';
import { type Fixes, type StepLines, createStepLines } from './step-lines.js';
import { startTicker } from './ticker.js';

interface Watch {
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
  /** When the runs below were first found blocked, so that a prompt in between does not show them again. */
  readonly foundAt: Map<string, number>;
  readonly until: FollowTarget;
  /** Follow a run that is ending to its end, past the end of the turn. */
  readonly followsEnding?: boolean;
  /** The run as it was when the command joined it; null for a run that was just started. */
  readonly joined: Pick<RunReading, 'events' | 'view'> | null;
  /** Do not show the past of a joined run again. */
  readonly knowsPast?: boolean;
  /** Blocks up to this event of the joined segment are being retried. */
  readonly retriedUpTo: number;
  /** Do not show the header of the run again. */
  readonly knowsHeader?: boolean;
}

/** How watching ended. `last` is null if not even the start of the run was read. */
type WatchEnd =
  | { readonly type: 'ended'; readonly last: FollowedRun }
  /** `below`: what the runs of called agents wait for that the run waits for. */
  | { readonly type: 'waiting'; readonly last: FollowedRun; readonly below: Below }
  /** There are requests that the person at the terminal has not seen. */
  | { readonly type: 'requests'; readonly last: FollowedRun; readonly requests: readonly Unseen[] }
  | { readonly type: 'turn-ended'; readonly last: FollowedRun; readonly ended: FinishedTurn }
  | { readonly type: 'interrupted'; readonly last: FollowedRun | null };

const NO_HEADER: RunHeader = { show: async () => undefined };

/** A request of a run, or of a run below it. */
interface Unseen {
  readonly run: string;
  readonly id: string;
  readonly digest: string;
}

/**
 * Shows a run's progress until the run or the followed turn ends, until it waits, or until an
 * interrupt. Throws if the server stays unavailable or our worker dies.
 */
async function watchRun(
  context: CliContext,
  client: Client,
  { stepLines, ...watch }: Watch & { readonly stepLines: StepLines },
): Promise<WatchEnd> {
  const paint = palette(context.color);
  const screen = await openScreen(context);
  const header = watch.knowsHeader ? NO_HEADER : await runHeader(context, watch, paint);
  const broken = new AbortController();
  const giveUp = (error: unknown): void => broken.abort(error);
  watch.ready.catch(giveUp);
  const { id, runId, interrupt, hosting } = watch;
  const joined = watch.joined?.view ?? null;
  const after = joined?.lastEvent ?? 0;
  let last: FollowedRun | null = joined && { runId, view: joined };
  const lines = collectLines(stepLines, watch.until);
  const view = (): Projection | null => last?.view ?? null;
  const liveText = createLiveText(paint);
  const ticker = startTicker(context, client, {
    ...watch,
    screen,
    paint,
    giveUp,
    view,
    liveText,
  });
  const closed = new AbortController();
  const faults = AbortSignal.any([broken.signal, hosting.died]);
  const signal = AbortSignal.any([interrupt, faults, closed.signal]);
  let below = NOTHING_BELOW;
  const lookBelow = async (): Promise<void> => {
    below = await watchBelow(context, client, { ...watch, view, screen, signal });
    if (!isNothing(below)) closed.abort();
  };
  try {
    await header.show(joined, screen);
    if (joined !== null) {
      lines.add((watch.joined?.events ?? []).flatMap(createStepEmitter(runId)));
      const past = lines.take(joined);
      if (!watch.knowsPast) {
        for (const line of [
          ...(await earlierLines(context, watch, joined)),
          ...lastLines(past, paint),
        ])
          screen.line(line);
      }
    }
    if (context.isTty) {
      const onEvent = (event: StreamEvent): void => {
        if (liveText.add(event)) ticker.draw();
      };
      const unreachable = (why: string): void => screen.line(why);
      void subscribe(context, client, { id, signal: closed.signal, onEvent, unreachable });
    }
    void lookBelow();
    const segments = followSegments(client, { id, runId, signal }, { onSteps: lines.add, after });
    for await (const followed of segments) {
      // The history is read from its beginning.
      if (followed.runId === runId && followed.view.lastEvent < after) continue;
      last = followed;
      await header.show(followed.view, screen);
      for (const line of lines.take(followed.view)) screen.line(line);
      ticker.onProgress();
      const end = await endOfWatch(context, watch, followed);
      if (end !== null) return end;
    }
    if (faults.aborted) throw faults.reason;
    if (isNothing(below) || last === null) return { type: 'interrupted', last };
    return watch.seen === null
      ? { type: 'waiting', last, below }
      : { type: 'requests', last, requests: below.requests };
  } catch (error) {
    throw isGrpcServiceError(error) ? await serverGone(context, watch, error) : error;
  } finally {
    closed.abort();
    ticker.stop();
    screen.close();
  }
}

/** Returns the line for what a joined run did before its newest segment, which is not shown. */
async function earlierLines(
  context: CliContext,
  { id, taskQueue }: Pick<Watch, 'id' | 'taskQueue'>,
  { state }: Projection,
): Promise<readonly string[]> {
  const { segments = 1 } = state ?? {};
  if (segments === 1) return [];
  const read = await nextCommandFor(context, { taskQueue }, ['transcript', id]);
  return [`The run is in segment ${segments}; read what it did before with: ${read}`];
}

/** Collects the steps of a run until their lines are shown. */
interface LineCollector {
  readonly add: (steps: readonly DurableStep[]) => void;
  /** Returns the lines of the steps so far, and of what the run waits for now. */
  readonly take: (view: Projection) => readonly string[];
}

function collectLines(stepLines: StepLines, until: FollowTarget): LineCollector {
  let steps: readonly DurableStep[] = [];
  return {
    add: (added) => {
      steps = [...steps, ...added];
    },
    take: (view) => {
      const own = upTo(until, steps);
      steps = [];
      return [...stepLines.steps(own, view), ...stepLines.now(view)];
    },
  };
}

/** Omits the steps of turns after the followed one. */
function upTo(until: FollowTarget, steps: readonly DurableStep[]): readonly DurableStep[] {
  const next = steps.findIndex(
    (step) => until !== 'end' && step.type === 'turn-begun' && step.turn > until.turn,
  );
  return next < 0 ? steps : steps.slice(0, next);
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
  return watch.leaveWhenWaiting && waits(last, watch)
    ? { type: 'waiting', last, below: NOTHING_BELOW }
    : null;
}

/** Returns the requests that the person at the terminal, if any, has not seen. */
function unseenIn(view: Projection, { id: run, seen }: Watch): readonly Unseen[] {
  if (seen === null) return [];
  return viewedRequests(view, run)
    .filter(({ digest, checking }) => !seen.has(digest) && checking !== true)
    .map(({ id, digest }) => ({ run, id, digest }));
}

/**
 * Returns whether the run waits for a person: it is paused, it does nothing until a request is
 * decided, or it is blocked by something that is not being retried.
 */
export function waits(
  { runId, view }: FollowedRun,
  watch: Pick<Watch, 'id' | 'runId' | 'retriedUpTo'>,
): boolean {
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
    runnable: (text) => runnableText(context, text),
    // The report on such a run has the requests.
    showsRequests: (view) => leaveWhenWaiting && isIdle(view) && !reached(view, watch.until),
    width: columnsOf('stderr'),
  };
}

/** How far a command follows a run. */
export interface FollowOptions {
  /** False for `--no-wait`. */
  readonly wait: boolean;
  /** Stay up until a key is pressed. */
  readonly ui?: boolean;
  /** The name under which the person at the terminal decides; absent: the user of the system. */
  readonly by?: string;
  /** More turns follow at once, so how to go on is not said, and the console only with the header; default: false. */
  readonly chat?: boolean;
  /** Takes a line that was typed right after `later`. Default: it is said that it was not read. */
  readonly onLine?: ((line: string) => void) | undefined;
}

interface RunToFollow extends Omit<Watch, 'leaveWhenWaiting' | 'seen' | 'foundAt'> {
  /** Why a worker of this configuration would block the run; null if it would not. */
  readonly lack: string | null;
  /** The id of the message that the command sent to the run. */
  readonly messageId?: string;
  /** The run waits already, and the command does not wait with it; default: false. */
  readonly rests?: boolean;
}

type ReachedEnd = Extract<WatchEnd, { type: 'ended' | 'turn-ended' }>;

/** Follows a run as far as the options specify, and reports its state. The console shows it meanwhile. */
export async function followAndReport(
  context: CliContext,
  run: RunToFollow,
  options: FollowOptions,
): Promise<ExitCode> {
  const { chat = false } = options;
  const isServed = !(chat && run.knowsHeader) && (await noteConsole(context, run));
  const code = await follow(context, run, options);
  if (isServed && !chat) await noteLaterConsole(context, run);
  return code;
}

async function follow(
  context: CliContext,
  run: RunToFollow,
  { wait, ui = false, by, chat = false, onLine }: FollowOptions,
): Promise<ExitCode> {
  const { id, hosting, interrupt } = run;
  const end = await watchWithPrompts(context, run, {
    wait,
    ...(by !== undefined && { by }),
    onLine,
  });
  // It may not be known yet which worker serves the run.
  if (end.type === 'waiting') await run.ready.then(() => untilPublished(context, run));
  const runId = end.last?.runId ?? run.runId;
  const { taskQueue, lack } = run;
  const left = { id, runId, taskQueue, lack, last: end.last, wasHosting: await hosting.isAlone() };
  if (end.type === 'interrupted') {
    const agent = chat ? end.last?.view.input?.agent : undefined;
    const again = agent === undefined ? {} : { again: ['chat', agent, '--id', id] };
    return await reportInterrupted(context, { ...left, ...again });
  }
  if (end.type === 'waiting')
    return await reportWaiting(context, { ...left, by, below: end.below });
  const code = await reportReached(context, run, end);
  const staysUp = ui && context.isTty && hosting.isHosting;
  const resting = staysUp ? { ...left, wasHosting: false } : left;
  if (end.type === 'turn-ended' && !chat) await reportOpen(context, resting);
  if (staysUp) await stayUp(context, id, interrupt);
  return code;
}

/**
 * Watches a run. If a person is at the terminal, each request is shown to them once, and they may
 * decide there; the run is watched again after that.
 */
async function watchWithPrompts(
  context: CliContext,
  run: RunToFollow,
  {
    wait,
    by,
    onLine,
  }: Pick<FollowOptions, 'wait' | 'onLine'> & { readonly by?: string | undefined },
): Promise<Exclude<WatchEnd, { type: 'requests' }>> {
  const client = await context.client();
  const leaveWhenWaiting = !wait || !context.isTty;
  const seen = new Set<string>();
  const foundAt = new Map<string, number>();
  let watch: Watch = { ...run, leaveWhenWaiting, seen: leaveWhenWaiting ? null : seen, foundAt };
  const stepLines = createStepLines(palette(context.color), await fixesFor(context, watch));
  for (;;) {
    const end = await watchRun(context, client, { ...watch, stepLines });
    if (end.type === 'turn-ended' && run.followsEnding && isEnding(end.last.view)) {
      watch = { ...continued(watch, end.last), until: 'end' };
      continue;
    }
    if (end.type !== 'requests') return end;
    for (const { run: id, digest } of end.requests) {
      seen.add(digest);
      if (run.interrupt.aborted) continue;
      const asked = { id, digest, by };
      const ends = { ...run, onLine };
      await promptForDecision(context, client, asked, ends).catch(async (error: unknown) => {
        throw isGrpcServiceError(error) ? await serverGone(context, run, error) : error;
      });
    }
    watch = continued(watch, end.last);
  }
}

/** Returns the watch of the same run from where it was left. The lines until there have been shown. */
function continued(watch: Watch, { runId, view }: FollowedRun): Watch {
  const retriedUpTo = runId === watch.runId ? watch.retriedUpTo : 0;
  return { ...watch, runId, joined: { view, events: [] }, retriedUpTo, knowsHeader: true };
}

/** Reports a run that has reached the target. */
async function reportReached(
  context: CliContext,
  { id, messageId }: RunToFollow,
  end: ReachedEnd,
): Promise<ExitCode> {
  const last = { id, ...end.last };
  if (end.type === 'ended') return await reportEnd(context, last);
  return await reportTurn(context, { ...end.ended, ...last, messageId });
}
