import type { RunEvent } from '../../core/events.js';
import { reduce } from '../../core/reduce.js';
import type { ProjectionState } from './state.js';

/** Applies a run event to the state, and collects the messages that it adds. */
export function emit(projection: ProjectionState, event: RunEvent): void {
  if (projection.state === null) return;
  const { next } = projection.state.transcript;
  projection.state = reduce(projection.state, event);
  const { messages } = projection.state.transcript;
  // Only a compaction inserts before the end, and only one message.
  const fresh = messages.slice(
    event.type === 'compacted' ? 0 : -(projection.state.transcript.next - next),
  );
  if (projection.state.transcript.next > next)
    projection.messages.push(...fresh.filter(({ n }) => n >= next));
}

/** The work of the turn was interrupted. The events before show by what. */
export function interrupt(projection: ProjectionState, at: number): void {
  if (projection.state === null || projection.state.turn.outcome !== null) return;
  const by = projection.cancelRequested
    ? 'cancel'
    : projection.cancelTurnRequested
      ? 'cancelTurn'
      : 'wallMs';
  // Blocked work is interrupted too, so nothing is blocked any more.
  projection.blocked.clear();
  for (const result of projection.canceledProbes.values())
    emit(projection, { type: 'call-finished', result });
  projection.canceledProbes.clear();
  emit(projection, { type: 'interrupted', by, at });
}

/** Whether a call of the open batch is in flight. */
export function hasCallsInFlight({ inFlight }: ProjectionState): boolean {
  return [...inFlight.values()].some(({ call }) => call !== null);
}
