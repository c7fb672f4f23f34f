import { appendMessage, dropRepairBranch, withTurn } from '../change.js';
import { beginPass } from '../graph/walk.js';
import { takeMessages, type Incoming } from '../inbox.js';
import type { RunState } from '../state.js';
import { freshTurn } from '../turn.js';

/** Begins the turn of the oldest message that waits. `at`: Unix time in ms. */
export function beginTurn(state: RunState, at: number): RunState {
  const number = state.inbox.waiting[0]?.turn ?? state.turn.number + 1;
  const { taken } = takeMessages(state.inbox, number);
  const begun = joinMessages({ ...state, turn: freshTurn(number, state.config.price, at) }, at);
  return beginPass(begun, { taken, at });
}

/** Moves the messages for the turn under way into the transcript, in the order of their arrival. */
export function joinMessages(state: RunState, at: number): RunState {
  const { taken, inbox } = takeMessages(state.inbox, state.turn.number);
  if (taken.length === 0) return state;
  const { notes = [], ...before } = withRequesters(dropRepairBranch(state), taken);
  const noted = notes.reduce<RunState>(
    (next, text) => appendMessage(next, at, { role: 'user', text, origin: 'perdure' }),
    before,
  );
  return taken.reduce<RunState>(
    (next, { id, text, pinned, attachments, by, input }) => {
      // What a graph gets as data has no text for a model.
      if (text === '' && input !== undefined) return next;
      return appendMessage(next, at, {
        role: 'user',
        text,
        ...(attachments && { attachments }),
        id,
        ...(pinned && { pinned }),
        ...(by !== undefined && { by }),
      });
    },
    { ...noted, inbox },
  );
}

/** Remembers who asks in this turn: rules may say that others have to decide. */
function withRequesters(state: RunState, taken: readonly Incoming[]): RunState {
  const names = taken.flatMap(({ by }) => (by === undefined ? [] : [by]));
  if (names.length === 0) return state;
  return withTurn(state, { by: [...new Set([...(state.turn.by ?? []), ...names])] });
}
