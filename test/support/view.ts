import type { Projection } from '../../src/history/projection.js';
import type { RunState } from '../../src/core/state/state.js';

/** Returns the projection of a run in a given state, with its messages in order. */
export function viewOf(state: RunState | null, rest: Partial<Projection> = {}): Projection {
  const messages = state?.transcript.messages ?? [];
  return {
    state,
    input: { agent: 'test', message: 'go' },
    messages: messages.toSorted((one, other) => one.n - other.n),
    usageByMessage: new Map(),
    retriedByMessage: new Map(),
    retriedWork: new Map(),
    decisions: [],
    turns: [],
    inFlight: new Map(),
    visits: new Map(),
    waitedByMessage: new Map(),
    blocked: new Map(),
    ended: null,
    outcome: null,
    cancelRequested: false,
    startedAt: 0,
    lastEvent: 1,
    ...rest,
  };
}
