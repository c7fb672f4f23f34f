import type { Attempt } from '../client/attempts.js';
import type { InFlight, Projection } from '../client/projection.js';
import { callSummary, visible } from '../core/summaries.js';
import type { Palette } from './output.js';
import { count, duration, spend } from './words.js';

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
  if (state === null) return paint.dim(`starting · ${duration(now - (view.startedAt ?? now))}`);
  const flying = [...view.inFlight.values()];
  const again = flying.flatMap(({ activityId }) => attempts.get(activityId) ?? []);
  return [
    paint.cyan(stepOf(view)),
    ...(flying.length === 0
      ? [...view.blocked.values()].map(({ reason }) => paint.yellow(`blocked (${reason})`))
      : [doing(flying, state.config.definition.model), elapsed(flying, now)]),
    ...again.filter(({ attempt }) => attempt > 1).map((told) => paint.yellow(attemptText(told))),
    paint.dim(spend(state.turn.spent.usage)),
  ].join(' · ');
}

/** `attempt 3, after: slow down`. */
export function attemptText({ attempt, lastFailure }: Attempt): string {
  return `attempt ${attempt}${lastFailure === '' ? '' : `, after: ${visible(lastFailure)}`}`;
}

function stepOf({ state }: Projection): string {
  const turn = state?.turn;
  if (turn?.closing) return 'closing';
  const step = turn?.batch?.step ?? (turn?.spent.steps ?? 0) + 1;
  const cap = state?.config.limits.turn.steps;
  return cap === undefined || cap === null ? `step ${step}` : `step ${step} of ${cap}`;
}

function doing(flying: readonly InFlight[], model: string): string {
  const names = flying.map(({ call, activity, summary }) => {
    if (call !== null) return callSummary(call);
    return activity === 'callModel' ? visible(model) : visible(summary || activity);
  });
  return names.length === 1
    ? names.join('')
    : visible(`${count(names.length, 'call')}: ${names.join(', ')}`);
}

/** Of what has been going on for longest. */
function elapsed(flying: readonly InFlight[], now: number): string {
  return duration(now - Math.min(...flying.map(({ at }) => at)));
}
