import { isObject, textField } from '../core/text/json.js';
import type { HistoryEvent } from './history-event.js';

/** The run of a called agent, as its caller's history has it. */
export interface BegunRun {
  /** Run id of its first segment; empty if the history does not say it. */
  readonly runId: string;
  /** When the caller learned that it has begun: Unix time in ms. */
  readonly at: number;
}

/**
 * Returns the runs that a run has called and that have begun, by their ids. One that was to be called
 * when its caller ended may never have begun.
 */
export function begunRuns(
  segments: readonly (readonly HistoryEvent[])[],
): ReadonlyMap<string, BegunRun> {
  const called = new Map<string, string>();
  const begun = new Map<string, BegunRun>();
  const existed = (run: string | undefined, at: number): void => {
    if (run !== undefined && !begun.has(run)) begun.set(run, { runId: '', at });
  };
  for (const event of segments.flat()) {
    const { at } = event;
    if (event.type === 'child-started') called.set(event.call, event.child);
    if (event.type === 'child-began') begun.set(event.child, { runId: event.runId, at });
    if (event.type === 'child-existed') existed(called.get(event.call), at);
    if (event.type === 'scheduled' && event.activity === 'followRun' && isObject(event.input))
      existed(textField(event.input, 'run'), at);
  }
  return begun;
}
