import { withTurn } from '../change.js';
import { callSummary } from '../text/summaries.js';
import type { RequestedCall, ToolCall } from '../transcript/messages.js';
import { getOpenBatch } from '../turn.js';
import type { RunEvent } from '../events.js';
import type { RunState } from '../state.js';
import { findWork, withWork, type Work } from '../work/work.js';
import { withUndoState } from './undo.js';

type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>;

/** Opens a request about work, replaces its previous one, and assigns the next id. */
export function raiseRequest(
  state: RunState,
  { work: name, request }: EventOf<'request-raised'>,
): RunState {
  const number = (state.requests ?? 0) + 1;
  const { proposal: _, ...before }: Partial<Work> = findWork(state, name) ?? {};
  const raised = { ...request, id: `r${number}` };
  // Blocked work keeps being retried, because its cause may disappear by itself.
  const isBlocked = before.block !== undefined || request.kind === 'tool_changed';
  const phase = isBlocked ? 'waiting' : 'asking';
  return { ...withWork(state, { ...before, name, request: raised, phase }), requests: number };
}

/** Records that a notification was sent for a request. */
export function notified(state: RunState, id: string): RunState {
  const work = state.work.find(({ request }) => request?.id === id);
  if (work?.request === undefined) return state;
  return withWork(state, { ...work, request: { ...work.request, notified: true } });
}

/** Records the result of an undo. The model learns of it with the next message. */
export function undoChanged(
  state: RunState,
  { call: id, state: undo, message }: EventOf<'undo-changed'>,
): RunState {
  const change = { state: undo, ...(message !== undefined && { message }) };
  const kept = withUndoState(state.kept, id, change);
  const call = kept.find((one) => one.call.id === id)?.call;
  if (undo !== 'undone' || call === undefined) return { ...state, kept };
  const note = `[a person has undone ${id}: ${callSummary(call)}]`;
  return { ...state, kept, notes: [...(state.notes ?? []), note] };
}

/** Stores the rules' verdict on an open call of a graph's node. */
export function recordVerdict(
  state: RunState,
  { id, verdict, parsed }: Omit<EventOf<'verdict-recorded'>, 'type'>,
): RunState {
  const batch = getOpenBatch(state);
  if (batch === null) return state;
  const calls = batch.calls.map((one) =>
    one.id === id ? { ...one, verdict, ...(parsed && { parsed }) } : one,
  );
  return withTurn(state, { phase: { type: 'acting', batch: { ...batch, calls } } });
}

/** Stores what the tool of a call that a person may undo gets. */
export function undoParsed(
  state: RunState,
  { call: id, parsed }: EventOf<'undo-parsed'>,
): RunState {
  const kept = state.kept?.map((one) =>
    one.call.id === id ? { ...one, call: { ...one.call, parsed } } : one,
  );
  return { ...state, ...(kept && { kept }) };
}

/** Replaces the arguments of an open call with those from a person. */
export function editCall(
  state: RunState,
  { id, call }: { id: string; call: RequestedCall },
): RunState {
  const batch = getOpenBatch(state);
  if (batch === null) return state;
  const calls = batch.calls.map((one): ToolCall =>
    one.id === id ? { ...call, id, edited: true, ...(one.node && { node: one.node }) } : one,
  );
  return withTurn(state, { phase: { type: 'acting', batch: { ...batch, calls } } });
}
