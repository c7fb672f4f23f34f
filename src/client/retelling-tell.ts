import type { RunEvent } from '../core/events.js';
import { reduce } from '../core/reduce.js';
import type { Retelling } from './retelling-state.js';

/** The state after one more event, and what was said by it. */
export function tell(told: Retelling, event: RunEvent): void {
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
