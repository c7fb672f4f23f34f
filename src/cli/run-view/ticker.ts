import type { Client } from '@temporalio/client';
import { isIdle } from '../../client/below.js';
import { itemsText } from '../../core/graph/items.js';
import type { AgentDefinition } from '../../core/definition/definition.js';
import { presentRequest } from '../../core/requests/presentation.js';
import { planProgress } from '../../core/run/details.js';
import type { RunState } from '../../core/state/state.js';
import type { RunStatusName } from '../../core/state/status.js';
import { statusText } from '../../core/state/status-text.js';
import { failureText, visible } from '../../core/state/summaries.js';
import {
  currentNode,
  currentStep,
  itemProgress,
  nodeOfCall,
  workText,
  stepOfLimit,
} from '../../core/state/turn-definition.js';
import { type InFlight, type Projection, visitKey, waitingFor } from '../../history/projection.js';
import { describeWorkflow } from '../../temporal/server-answers.js';
import type { CliContext } from '../context.js';
import {
  type Palette,
  cutLine,
  formatCount,
  formatDateTime,
  formatDuration,
  formatSpan,
  formatUsage,
} from '../format/format.js';
import type { Hosting } from '../hosting/hosting.js';
import { viewedRequests } from '../requests/show-request.js';
import type { LiveText, Screen } from './live-text.js';

/** An activity that Temporal retries. */
interface Attempt {
  /** Counted from 1. */
  readonly attempt: number;
  /** Why the previous attempt failed; empty if unknown. */
  readonly lastFailure: string;
}

/** Reads the current attempts of the activities in flight, by activity id. */
async function pendingAttempts(client: Client, id: string): Promise<ReadonlyMap<string, Attempt>> {
  const { raw } = await describeWorkflow(client, id);
  return new Map(
    (raw.pendingActivities ?? []).map(({ activityId, attempt, lastFailure }) => [
      activityId ?? '',
      { attempt: attempt ?? 1, lastFailure: lastFailure?.message ?? '' },
    ]),
  );
}

/**
 * Returns the current activity of a run in one line. `attempts` is keyed by activity id; `now` is a
 * Unix time in ms.
 */
export function liveLine(
  view: Projection,
  options: {
    readonly now: number;
    readonly attempts: ReadonlyMap<string, Attempt>;
    readonly paint: Palette;
    /** The id of the run. */
    readonly run: string;
  },
): string {
  const { now, attempts, paint } = options;
  const { state } = view;
  if (state === null)
    return paint.dim(`starting · ${formatDuration(now - (view.startedAt ?? now))}`);
  const inFlight = [...view.inFlight.values()];
  const waits = isIdle(view) ? waitTexts(view, options) : [];
  const isWaiting = waits.length > 0 || inFlight.length === 0;
  const attempted = inFlight.flatMap(({ activityId }) => attempts.get(activityId) ?? []);
  return [
    paint.cyan(positionText(view)),
    ...nodeTexts(state).map((text) => paint.cyan(text)),
    ...(isWaiting
      ? waits.map((text) => paint.yellow(text))
      : [...doing(inFlight, state.config.definition), elapsed(view, inFlight, now)]),
    ...attemptTexts(attempted).map((text) => paint.yellow(`${isWaiting ? 'notice: ' : ''}${text}`)),
    ...(state.paused && inFlight.length > 0 ? [paint.yellow('pausing after this')] : []),
    ...queued(state.inbox.waiting.length),
    paint.dim(formatUsage(state.turn.spent.usage)),
  ].join(' · ');
}

/** Returns what blocks the run or what it waits for. */
function waitTexts(
  view: Projection,
  { now, run }: { readonly now: number; readonly run: string },
): readonly string[] {
  if (view.blocked.size > 0) {
    const reasons = new Set([...view.blocked.values()].map(({ reason }) => reason));
    return [...reasons].map((reason) => statusText({ status: 'blocked', reason }));
  }
  const [request] = viewedRequests(view, run);
  if (request !== undefined) {
    const status = statusText({ status: 'waiting_decision', reason: request.kind });
    return [visible(`${status}: ${presentRequest(request).headline}`)];
  }
  const waits = waitingFor(view);
  switch (waits?.type) {
    case 'message':
      return ['waiting_message' satisfies RunStatusName];
    case 'paused':
      return ['paused' satisfies RunStatusName];
    case 'time':
      return [
        `${'waiting_time' satisfies RunStatusName} until ${formatDateTime(waits.until)}, in ${formatSpan(waits.until - now)}`,
      ];
    case undefined:
      return [];
  }
}

function queued(messages: number): readonly string[] {
  return messages === 0 ? [] : [`${formatCount(messages, 'message')} queued`];
}

/** Formats an attempt: `attempt 3, after: slow down`. */
function attemptText({ attempt, lastFailure }: Attempt): string {
  return `attempt ${attempt}${lastFailure === '' ? '' : `, after: ${failureText(lastFailure)}`}`;
}

/** Returns the texts of further attempts: one for several calls that are at the same attempt. */
function attemptTexts(attempts: readonly Attempt[]): readonly string[] {
  const texts = attempts.filter(({ attempt }) => attempt > 1).map(attemptText);
  return [...new Set(texts)].map((text) => {
    const same = texts.filter((one) => one === text).length;
    return same === 1 ? text : `${formatCount(same, 'call')}: ${text}`;
  });
}

/** Returns the step, and also the turn unless it is the first: most runs have only one. */
function positionText({ state }: Projection): string {
  const turn = state?.turn.number ?? 0;
  return turn > 1 ? `turn ${turn}, ${stepText(state)}` : stepText(state);
}

/** Returns the current node of a graph, with the progress of its items or actions. */
function nodeTexts(state: RunState): readonly string[] {
  const node = currentNode(state);
  if (node === undefined) return [];
  const name = visible(`node ${node.name}`);
  const items = itemProgress(state);
  if (items !== null) return [name, itemsText({ ...items, ended: items.done })];
  const plan = node.kind === 'execute' ? planProgress(state) : null;
  if (plan === null) return [name];
  return [name, `${plan.done} of ${formatCount(plan.actions.length, 'action')}`];
}

function stepText(state: Projection['state']): string {
  if (state?.turn.phase.type === 'closing') return 'closing';
  return state === null ? 'step 1' : `step ${stepOfLimit(state, currentStep(state))}`;
}

/** Returns what is in flight. The name of the node says what its own work is. */
function doing(all: readonly InFlight[], definition: AgentDefinition): readonly string[] {
  const inFlight = all.filter(({ call }) => call === null || nodeOfCall(call) === null);
  if (inFlight.length === 0) return [];
  const names = inFlight.map((one) => workName(one, definition));
  return [
    names.length === 1
      ? names.join('')
      : visible(`${formatCount(names.length, 'call')}: ${names.join(', ')}`),
  ];
}

function workName(
  { call, activity, summary, input }: InFlight,
  definition: AgentDefinition | undefined,
): string {
  const model = definition?.model ?? '';
  if (call !== null) return workText(definition, call);
  if (activity === 'archiveMessages') return 'archiving older messages';
  if (activity === 'checkBlob') return 'waiting for the blob store';
  if (activity !== 'callModel') return visible(summary || activity);
  return 'compact' in input ? visible(`summarizing, ${model}`) : visible(model);
}

/**
 * Returns how long the work has been running: the visit of a node that does many things one after another,
 * without its waits for people, or else the oldest activity in flight.
 */
function elapsed(
  { state, visits }: Pick<Projection, 'state' | 'visits'>,
  inFlight: readonly InFlight[],
  now: number,
): string {
  const place = state?.graph?.at;
  const isMany = state !== null && ['each', 'execute'].includes(currentNode(state)?.kind ?? '');
  if (place && isMany) {
    return formatDuration(now - place.since - (visits.get(visitKey(place))?.waitedMs ?? 0));
  }
  return formatDuration(now - Math.min(...inFlight.map(({ at }) => at)));
}

const TICK_MS = 250;
/** The width of a terminal that does not report it. */
const DEFAULT_COLUMNS = 80;
/** The server is queried for retries only after an activity has run this long. */
const LONG_MS = 1_000;
/** The minimum interval between two such queries. */
const QUERY_MS = 1_000;
/**
 * After this time without progress, the worker elsewhere is probed. The time doubles after each
 * probe.
 */
const QUIET_MS = 3_000;
const MAX_QUIET_MS = 60_000;

interface TickerOptions {
  readonly id: string;
  readonly runId: string;
  readonly hosting: Hosting;
  readonly screen: Screen;
  readonly paint: Palette;
  readonly giveUp: (error: unknown) => void;
  /** Null before the first event. */
  readonly view: () => Projection | null;
  /** The reply in progress. */
  readonly liveText: Pick<LiveText, 'lines'>;
}

interface Ticker {
  /** Restarts the wait for a probe, because the history has new events. */
  onProgress(): void;
  /** Redraws the live lines. */
  draw(): void;
  stop(): void;
}

/**
 * Updates the screen while nothing new is recorded: elapsed time, attempts, and probes of the
 * worker.
 */
export function startTicker(context: CliContext, client: Client, options: TickerOptions): Ticker {
  const { id, hosting, screen, paint, giveUp } = options;
  const startedAt = performance.now();
  let progressAt = startedAt;
  let quietMs = QUIET_MS;
  let attempts: ReadonlyMap<string, Attempt> = new Map();
  const showAttempts = createAttemptLines(screen);

  const draw = (): void => {
    const view = options.view();
    if (view !== null && view.ended === null) {
      const width = process.stderr.columns || DEFAULT_COLUMNS;
      const line = liveLine(view, { now: Date.now(), attempts, paint, run: id });
      screen.live([...options.liveText.lines(width), cutLine(line, width)].join('\n'));
    }
  };
  const queryAttempts = async (): Promise<void> => {
    const view = options.view();
    const oldest = Math.min(...[...(view?.inFlight.values() ?? [])].map(({ at }) => at));
    attempts = Date.now() - oldest > LONG_MS ? await pendingAttempts(client, id) : new Map();
    if (!context.isTty) showAttempts(attempts, view);
  };
  const probeWorker = (): void => {
    if (hosting.isHosting || performance.now() - progressAt < quietMs) return;
    progressAt = performance.now();
    quietMs = Math.min(2 * quietMs, MAX_QUIET_MS);
    hosting.ensure().catch(giveUp);
  };

  const drawTimer = setInterval(draw, TICK_MS);
  // The watcher that follows the history reports a server that does not answer.
  const queryTimer = setInterval(() => void queryAttempts().catch(() => undefined), QUERY_MS);
  const probeTimer = setInterval(probeWorker, QUERY_MS);
  return {
    draw,
    onProgress() {
      progressAt = performance.now();
      quietMs = QUIET_MS;
      draw();
    },
    stop() {
      for (const timer of [drawTimer, queryTimer, probeTimer]) clearInterval(timer);
    },
  };
}

/**
 * Creates the function that shows further attempts if lines cannot be overwritten, each in one line with
 * what is tried again. Several calls that are at the same attempt share a line.
 */
export function createAttemptLines(
  screen: Pick<Screen, 'line'>,
): (attempts: ReadonlyMap<string, Attempt>, view: Projection | null) => void {
  const shown = new Map<string, number>();
  return (attempts, view) => {
    const definition = view?.state?.config.definition;
    const works = new Map([...(view?.inFlight.values() ?? [])].map((one) => [one.activityId, one]));
    const lines = new Map<string, string[]>();
    for (const [activity, attempt] of attempts) {
      if (attempt.attempt <= (shown.get(activity) ?? 1)) continue;
      shown.set(activity, attempt.attempt);
      const work = works.get(activity);
      const text = attemptText(attempt);
      lines.set(text, [...(lines.get(text) ?? []), ...(work ? [workName(work, definition)] : [])]);
    }
    for (const [text, names] of lines) {
      screen.line(`… ${names.length === 0 ? '' : `${visible(names.join(', '))}: `}${text}`);
    }
  };
}
