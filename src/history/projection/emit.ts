import type { RunEvent } from '../../core/events.js';
import { reduce } from '../../core/reduce.js';
import type { ProjectionState } from './state.js';

/** The state after one more event, and what was said by it. */
export function tell(told: ProjectionState, event: RunEvent): void {
  if (told.state === null) return;
  const { next } = told.state.transcript;
  told.state = reduce(told.state, event);
  const { messages } = told.state.transcript;
  // Only a compaction inserts before the end, one message.
  const fresh = messages.slice(
    event.type === 'compacted' ? 0 : -(told.state.transcript.next - next),
  );
  if (told.state.transcript.next > next) told.said.push(...fresh.filter(({ n }) => n >= next));
}

/** The work of the turn was broken off, by whatever the events before have shown. */
export function interrupt(told: ProjectionState, at: number): void {
  if (told.state === null || told.state.turn.outcome !== null) return;
  const by = told.cancelRequested ? 'cancel' : told.cancelTurnRequested ? 'cancelTurn' : 'wallMs';
  // What stood still is broken off with the rest, and nobody waits for it any more.
  told.blocked.clear();
  for (const result of told.brokenProbes.values()) tell(told, { type: 'call-finished', result });
  told.brokenProbes.clear();
  tell(told, { type: 'interrupted', by, at });
}

/** Whether a call of the open batch is in flight. */
export function callsRunning({ inFlight }: ProjectionState): boolean {
  return [...inFlight.values()].some(({ call }) => call !== null);
}
