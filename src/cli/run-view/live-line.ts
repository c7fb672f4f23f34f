import { currentNode, currentStep, itemProgress, nodeOfCall } from '../../core/graph/node-tool.js';
import { planProgress } from '../../core/plan/progress.js';
import type { RunState } from '../../core/state.js';
import type { Attempt } from './attempts.js';
import type { InFlight, Projection } from '../../history/projection.js';
import { waitingFor } from '../../history/waiting-for.js';
import { headline } from '../../core/requests/request-view.js';
import { statusText, type RunStatusName } from '../../core/status.js';
import { callSummary, visible } from '../../core/text/summaries.js';
import type { Palette } from '../format/output.js';
import { formatDateTime, formatSpan } from '../format/format-time.js';
import { formatCount, formatDuration, formatUsage } from '../format/format.js';
import { viewedRequests } from '../requests/open-requests.js';

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
  const attempted = inFlight.flatMap(({ activityId }) => attempts.get(activityId) ?? []);
  return [
    paint.cyan(positionText(view)),
    ...nodeTexts(state).map((text) => paint.cyan(text)),
    ...(inFlight.length === 0
      ? waitTexts(view, options).map((text) => paint.yellow(text))
      : [...doing(inFlight, state.config.definition.model), elapsed(inFlight, now)]),
    ...attempted
      .filter(({ attempt }) => attempt > 1)
      .map((attempt) => paint.yellow(attemptText(attempt))),
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
    return [...view.blocked.values()].map(({ reason }) =>
      statusText({ status: 'blocked', reason }),
    );
  }
  const [request] = viewedRequests(view, run);
  if (request !== undefined) {
    const status = statusText({ status: 'waiting_decision', reason: request.kind });
    return [visible(`${status}: ${headline(request)}`)];
  }
  const waits = waitingFor(view);
  switch (waits?.type) {
    case 'message':
      return ['waiting_message' satisfies RunStatusName];
    case 'paused':
      return ['paused' satisfies RunStatusName];
    case 'time':
      return [
        `${'waiting_time' satisfies RunStatusName} until ${formatDateTime(waits.until)}, for ${formatSpan(waits.until - now)}`,
      ];
    case undefined:
      return [];
  }
}

function queued(messages: number): readonly string[] {
  return messages === 0 ? [] : [`${formatCount(messages, 'message')} queued`];
}

/** Formats an attempt: `attempt 3, after: slow down`. */
export function attemptText({ attempt, lastFailure }: Attempt): string {
  return `attempt ${attempt}${lastFailure === '' ? '' : `, after: ${visible(lastFailure)}`}`;
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
  if (items !== null) return [name, `${items.done} of ${formatCount(items.total, 'item')}`];
  const plan = node.kind === 'execute' ? planProgress(state) : null;
  if (plan === null) return [name];
  return [name, `${plan.done} of ${formatCount(plan.actions.length, 'action')}`];
}

function stepText(state: Projection['state']): string {
  const turn = state?.turn;
  if (turn?.phase.type === 'closing') return 'closing';
  const step = state === null ? 1 : currentStep(state);
  // The limit does not count the visits of a graph's nodes.
  const cap = state?.graph === undefined ? state?.config.limits.turn.steps : null;
  return cap === undefined || cap === null ? `step ${step}` : `step ${step} of ${cap}`;
}

/** Returns what is in flight. The name of the node says what its own work is. */
function doing(all: readonly InFlight[], model: string): readonly string[] {
  const inFlight = all.filter(({ call }) => call === null || nodeOfCall(call) === null);
  if (inFlight.length === 0) return [];
  const names = inFlight.map(({ call, activity, summary, input }) => {
    if (call !== null) return callSummary(call);
    if (activity === 'archiveMessages') return 'archiving older messages';
    if (activity === 'checkBlob') return 'waiting for the blob store';
    if (activity !== 'callModel') return visible(summary || activity);
    return 'compact' in input ? visible(`summarizing, ${model}`) : visible(model);
  });
  return [
    names.length === 1
      ? names.join('')
      : visible(`${formatCount(names.length, 'call')}: ${names.join(', ')}`),
  ];
}

/** Returns how long the oldest activity in flight has been running. */
function elapsed(inFlight: readonly InFlight[], now: number): string {
  return formatDuration(now - Math.min(...inFlight.map(({ at }) => at)));
}
