import { prune, say } from './change.js';
import { take } from './inbox.js';
import type { RunState } from './state.js';

/** What was said to the turn under way becomes part of the transcript, in the order in which it came. */
export function joinMessages(state: RunState, at: number): RunState {
  const { taken, inbox } = take(state.inbox, state.turn.number);
  if (taken.length === 0) return state;
  return taken.reduce<RunState>(
    (next, { id, text, pinned, attachments, by }) =>
      say(next, at, {
        role: 'user',
        text,
        ...(attachments && { attachments }),
        id,
        ...(pinned && { pinned }),
        ...(by !== undefined && { by }),
      }),
    { ...prune(state), inbox },
  );
}
