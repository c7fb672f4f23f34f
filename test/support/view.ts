import type { StepLines } from '../../src/cli/run-view/step-lines.js';
import type { Projection } from '../../src/history/projection.js';
import { advances } from '../../src/history/emit-steps.js';
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

/** Returns the lines that a follower sees who gets these views of a run one after another. */
export function follower(lines: StepLines): (view: Projection) => readonly string[] {
  let before: RunState | null = null;
  return (view) => {
    const after = view.state;
    if (after === null) return lines.now(view);
    const { graph: _, ...empty } = { ...after, transcript: { ...after.transcript, next: 0 } };
    const isNew = (before?.turn.number ?? 0) < after.turn.number;
    const steps = [
      ...(isNew ? [{ type: 'turn-begun', turn: after.turn.number } as const] : []),
      ...advances({ before: before ?? empty, after }, view),
    ];
    before = after;
    return [...lines.steps(steps, view), ...lines.now(view)];
  };
}
