import type { Projection } from '../../src/history/projection.js';
import type { RunState } from '../../src/core/state.js';

/** A run as a follower has it, in nothing but its state; what was said, by number. */
export function viewOf(state: RunState | null, rest: Partial<Projection> = {}): Projection {
  const said = state?.transcript.messages ?? [];
  return {
    state,
    input: { agent: 'test', message: 'go' },
    said: said.toSorted((one, other) => one.n - other.n),
    paid: new Map(),
    turns: [],
    inFlight: new Map(),
    blocked: new Map(),
    ended: null,
    outcome: null,
    cancelRequested: false,
    startedAt: 0,
    lastEvent: 1,
    ...rest,
  };
}
