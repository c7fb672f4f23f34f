import { decodeEvent } from '../../src/history/decode-event.js';
import type { History, RawEvent } from '../../src/history/history-event.js';
import { isObject, textField } from '../../src/core/text/json.js';
import type { Arrival } from './destinations.js';

/** What a run's history shows about the kill. */
export interface Tally {
  /** Requests for a reply that was already recorded. */
  readonly modelRepeats: number;
  /** Executions of a call whose result was already recorded. */
  readonly toolRepeats: number;
  /**
   * Milliseconds from the kill until the surviving worker has begun and completed its next step.
   */
  readonly nextStepMs: number;
}

export function tally(
  history: History,
  seen: {
    readonly killedAt: number;
    readonly modelCalls: readonly Arrival[];
    readonly toolAttempts: readonly Arrival[];
  },
): Tally {
  const completed = completions(history.events ?? []);
  const models = completed.filter(({ activity }) => activity === 'callModel');
  const recorded = new Map<number | string, number>([
    ...models.map(({ at }, step) => [step, at] as const),
    ...completed.flatMap(({ key, at }) => (key === '' ? [] : [[key, at] as const])),
  ]);
  const repeats = (arrivals: readonly Arrival[]): number =>
    arrivals.filter(({ what, at }) => at > (recorded.get(what) ?? Infinity)).length;
  const next = completed.find(({ startedAt }) => startedAt > seen.killedAt);
  return {
    modelRepeats: repeats(seen.modelCalls),
    toolRepeats: repeats(seen.toolAttempts),
    nextStepMs: (next?.at ?? Number.NaN) - seen.killedAt,
  };
}

interface Completion {
  readonly activity: string;
  /** The idempotency key of a tool call, or empty. */
  readonly key: string;
  /** When the attempt that counts began. */
  readonly startedAt: number;
  readonly at: number;
}

function completions(events: readonly RawEvent[]): readonly Completion[] {
  const facts = events.map(decodeEvent);
  const byId = new Map(facts.map((fact) => [fact.id, fact]));
  return events.flatMap((event, index): readonly Completion[] => {
    const fact = facts[index];
    if (fact?.type !== 'completed') return [];
    const scheduled = byId.get(fact.scheduled);
    if (scheduled?.type !== 'scheduled') return [];
    const started = Number(event.activityTaskCompletedEventAttributes?.startedEventId ?? 0);
    return [
      {
        activity: scheduled.activity,
        key: isObject(scheduled.input) ? textField(scheduled.input, 'key') : '',
        startedAt: byId.get(started)?.at ?? Number.NaN,
        at: fact.at,
      },
    ];
  });
}
