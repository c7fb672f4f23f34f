import type { Attempt } from './attempts.js';
import type { InFlight, Projection } from '../../history/projection.js';
import { waitingFor } from '../../history/waiting-for.js';
import { callSummary, visible } from '../../core/text/summaries.js';
import type { Palette } from '../format/output.js';
import { formatDateTime, formatSpan } from '../format/format-time.js';
import { formatCount, formatDuration, formatUsage } from '../format/format.js';

/** What is going on at this moment, in one line. `attempts` by activity id, `now` Unix time in ms. */
export function liveLine(
  view: Projection,
  given: {
    readonly now: number;
    readonly attempts: ReadonlyMap<string, Attempt>;
    readonly paint: Palette;
  },
): string {
  const { now, attempts, paint } = given;
  const { state } = view;
  if (state === null) return paint.dim(`starting · ${formatDuration(now - (view.startedAt ?? now))}`);
  const flying = [...view.inFlight.values()];
  const again = flying.flatMap(({ activityId }) => attempts.get(activityId) ?? []);
  return [
    paint.cyan(placeOf(view)),
    ...(flying.length === 0
      ? standing(view, now).map((text) => paint.yellow(text))
      : [doing(flying, state.config.definition.model), elapsed(flying, now)]),
    ...again.filter(({ attempt }) => attempt > 1).map((told) => paint.yellow(attemptText(told))),
    ...(state.paused && flying.length > 0 ? [paint.yellow('pauses after that')] : []),
    ...queued(state.inbox.waiting.length),
    paint.dim(formatUsage(state.turn.spent.usage)),
  ].join(' · ');
}

/** What stands still or is waited for. */
function standing(view: Projection, now: number): readonly string[] {
  if (view.blocked.size > 0) {
    return [...view.blocked.values()].map(({ reason }) => `blocked (${reason})`);
  }
  const waits = waitingFor(view);
  switch (waits?.type) {
    case 'message':
      return ['waits for a message'];
    case 'paused':
      return ['paused'];
    case 'time':
      return [`waits until ${formatDateTime(waits.until)}, for ${formatSpan(waits.until - now)}`];
    case undefined:
      return [];
  }
}

function queued(messages: number): readonly string[] {
  return messages === 0 ? [] : [`${formatCount(messages, 'message')} queued`];
}

/** `attempt 3, after: slow down`. */
export function attemptText({ attempt, lastFailure }: Attempt): string {
  return `attempt ${attempt}${lastFailure === '' ? '' : `, after: ${visible(lastFailure)}`}`;
}

/** The turn is named from the second on: most runs have one. */
function placeOf({ state }: Projection): string {
  const turn = state?.turn.number ?? 0;
  return turn > 1 ? `turn ${turn}, ${stepOf(state)}` : stepOf(state);
}

function stepOf(state: Projection['state']): string {
  const turn = state?.turn;
  if (turn?.closing) return 'closing';
  const step = turn?.batch?.step ?? (turn?.spent.steps ?? 0) + 1;
  const cap = state?.config.limits.turn.steps;
  return cap === undefined || cap === null ? `step ${step}` : `step ${step} of ${cap}`;
}

function doing(flying: readonly InFlight[], model: string): string {
  const names = flying.map(({ call, activity, summary, input }) => {
    if (call !== null) return callSummary(call);
    if (activity === 'archiveMessages') return 'keeping older messages';
    if (activity === 'checkBlob') return 'waiting for the blob store';
    if (activity !== 'callModel') return visible(summary || activity);
    return 'compact' in input ? visible(`summarising, ${model}`) : visible(model);
  });
  return names.length === 1
    ? names.join('')
    : visible(`${formatCount(names.length, 'call')}: ${names.join(', ')}`);
}

/** Of what has been going on for longest. */
function elapsed(flying: readonly InFlight[], now: number): string {
  return formatDuration(now - Math.min(...flying.map(({ at }) => at)));
}
