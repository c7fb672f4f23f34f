import { nameArtifacts } from './artifacts/artifacts.js';
import {
  fillBatch,
  findTool,
  finishedWaits,
  hasWakingMessage,
  notExecuted,
  openCalls,
} from './calls/batch.js';
import { cancelledCall, refusal, type CallResult } from './calls/call-result.js';
import { appendMessage, dropRepairBranch, endTurn, withTurn } from './change.js';
import { canCompact, compact } from './compaction.js';
import { CLOSING_INSTRUCTION, composeAnswer } from './compose.js';
import { applyControlEvent } from './control.js';
import { addDocuments } from './documents.js';
import { cancelled, failed, stopped } from './make-outcome.js';
import type { Interruption, RunEvent } from './events.js';
import { interruptionOf, stronger } from './work/interruption.js';
import type { FailReason, StopReason } from './outcome.js';
import { onClosingReply, onReply } from './on-reply.js';
import { completeBatch, closeBatch } from './calls/complete-batch.js';
import { addSpent, countCalls } from './spend.js';
import { RECENT_CHARACTERS, RECENT_TURNS, type EndedTurn, type RunState } from './state.js';
import {
  batchOf,
  closingReason,
  freshTurn,
  inTurn,
  isRepairing,
  outcomeOf,
  type Batch,
} from './turn.js';
import { takeMessages, type Incoming } from './inbox.js';
import type { ToolCall } from './transcript/messages.js';
import { editCall } from './requests/changes.js';
import { withKept } from './requests/undo.js';
import { findWork, isUndo, withoutWork, type Work } from './work/work.js';

/** Returns the next state of a run. Pure: equal states and events give equal states on every machine. */
export function reduce(state: RunState, event: RunEvent): RunState {
  switch (event.type) {
    case 'turn-begun':
      return beginTurn(state, event.at);
    case 'messages-joined':
      return joinMessages(state, event.at);
    case 'documents-retrieved':
      return addDocuments(state, event);
    case 'retrieval-failed':
      return endTurn(state, failed(state, { reason: 'error', message: event.message }));
    case 'model-replied':
      return closingReason(state) === null ? onReply(state, event) : onClosingReply(state, event);
    case 'model-failed':
      return modelFailed(state, event);
    case 'call-finished':
      return callFinished(state, event);
    case 'time-passed':
      return timePassed(state, event.at);
    case 'interruption-requested':
      return withTurn(state, { interruption: stronger(state.turn.interruption, event.by) });
    case 'interrupted':
      return inTurn(state) ? interruptTurn(state, event) : state;
    case 'closing-begun':
      return appendMessage(
        withTurn(dropRepairBranch(state), { phase: { type: 'closing', reason: event.reason } }),
        event.at,
        {
          role: 'user',
          text: CLOSING_INSTRUCTION,
          origin: 'perdure',
        },
      );
    case 'limit-ended':
      return limitEnded(dropRepairBranch(state), event.reason);
    case 'compacted':
      return compact(state, event);
    case 'turn-recorded':
      return recordTurn(state, event.at);
    case 'call-edited':
      return editCall(state, event);
    case 'limit-stands':
      return withTurn(state, { limitStands: true });
    case 'limit-lifted':
      return withTurn(state, { limit: null });
    case 'call-kept':
      return { ...state, kept: withKept(state.kept, event.kept) };
    default:
      return applyControlEvent(state, event);
  }
}

function beginTurn(state: RunState, at: number): RunState {
  const number = state.inbox.waiting[0]?.turn ?? state.turn.number + 1;
  return joinMessages({ ...state, turn: freshTurn(number, state.config.price, at) }, at);
}

/** Messages that joined after the last model call are not lost: the next turn reads them. */
function recordTurn(state: RunState, at: number): RunState {
  const { interruption: _, ...ended } = state.turn;
  const { number: turn } = ended;
  const outcome = outcomeOf(state);
  // Neither an interruption nor blocked work of this turn carries over to the next one.
  const over = {
    ...state,
    turn: { ...ended, phase: { type: 'idle', outcome } as const },
    work: state.work.filter(isUndo),
  };
  const joined = joinMessages(over, at);
  if (outcome === null) return joined;
  return { ...joined, recent: newestTurns([...state.recent, { turn, outcome }]) };
}

/** The newest turns that fit the limits on their number and on their size. */
function newestTurns(turns: readonly EndedTurn[]): readonly EndedTurn[] {
  let characters = 0;
  const from = turns.findLastIndex(({ outcome }) => {
    characters += JSON.stringify(outcome).length;
    return characters > RECENT_CHARACTERS;
  });
  return turns.slice(Math.max(from + 1, turns.length - RECENT_TURNS));
}

function modelFailed(state: RunState, event: { reason: FailReason; message: string }): RunState {
  const closing = closingReason(state);
  if (closing !== null)
    return endTurn(state, stopped(state, closing, composeAnswer(state, closing)));
  // The repair is longer than the model's window: it starts again, with the attempts that are left.
  if (event.reason === 'context_too_long' && isRepairing(state)) return dropRepairBranch(state);
  if (event.reason === 'context_too_long' && canCompact(state)) {
    return { ...state, compaction: { ...state.compaction, wanted: true } };
  }
  return endTurn(dropRepairBranch(state), failed(state, event));
}

function timePassed(state: RunState, at: number): RunState {
  const results = finishedWaits(state, at);
  const woken = hasWakingMessage(state)
    ? withTurn(state, { wokenBy: state.inbox.count ?? 0 })
    : state;
  return completeBatch(results.reduce(takeResult, woken), at);
}

/** An interruption closes the batch when all its calls have stopped. */
function callFinished(
  state: RunState,
  { result, at }: { result: CallResult; at: number },
): RunState {
  const taken = takeResult(state, result);
  return interruptionOf(state) === null ? completeBatch(taken, at) : taken;
}

/** Records and counts one result. A call keeps the first result that it gets. */
function takeResult(state: RunState, result: CallResult): RunState {
  const batch = batchOf(state);
  if (batch === null || !isOpen(batch, result.id)) return state;
  const counted = addSpent(
    countCalls(withoutWork(state, result.id), result.executed ? 1 : 0),
    result,
  );
  return nameArtifacts(
    withTurn(counted, { phase: { type: 'acting', batch: fillBatch(batch, result) } }),
  );
}

function isOpen({ calls, results }: Batch, id: string): boolean {
  const index = calls.findIndex((call) => call.id === id);
  return index !== -1 && results[index] === null;
}

/** Gives every open call a result that says why the work was interrupted. */
function interruptTurn(state: RunState, event: { by: Interruption; at: number }): RunState {
  const isCancel = event.by !== 'wallMs';
  const begun = openCallsOf(state).reduce((before, call) => {
    const result = brokenOffCall(before, call);
    return result === null ? before : takeResult(before, result);
  }, state);
  const why = isCancel ? 'cancelled by a person' : 'broken off: the time limit was reached';
  const { interruption: _, ...turn } = begun.turn;
  const idle = { ...begun, turn, work: begun.work.filter(isUndo) };
  const closed = closeBatch(dropRepairBranch(idle), event.at, (call) =>
    refusal(call.id, { type: 'cancelled', message: why }),
  );
  if (isCancel) return endTurn(closed, cancelled(closed));
  const closing = closingReason(closed);
  if (closing === null) return withTurn(closed, { limit: 'wallMs' });
  return endTurn(closed, stopped(closed, closing, composeAnswer(closed, closing)));
}

function openCallsOf(state: RunState): readonly ToolCall[] {
  const batch = batchOf(state);
  return batch === null ? [] : openCalls(state, batch);
}

/** Returns the result of a call that had begun and was interrupted while it waited; null for any other. */
function brokenOffCall(state: RunState, call: ToolCall): CallResult | null {
  const work = findWork(state, call.id);
  const tool = findTool(state, call.name);
  if (work === undefined || tool === undefined || (work.approved && !hasBegun(work))) return null;
  // Nothing has begun, except for a call of unknown outcome.
  if (work.request !== undefined && work.request.kind !== 'outcome_unknown') return null;
  if (work.startAt === undefined) return cancelledCall(call, tool);
  return notExecuted(call, 'the run was interrupted before it');
}

/** Whether a call that a person has approved was executed at least once, as far as its work shows. */
function hasBegun({ key, unknown, starts, probeMs }: Work): boolean {
  return [key, unknown, starts, probeMs].some((trace) => trace !== undefined);
}

function limitEnded(state: RunState, reason: StopReason): RunState {
  if (state.config.definition.onLimit !== 'fail') {
    return endTurn(state, stopped(state, reason, composeAnswer(state, reason)));
  }
  const message = `${reason}: the limit was reached, and this agent has onLimit "fail"`;
  return endTurn(state, { ...failed(state, { reason: 'limit', message }), limit: reason });
}

/** Moves the messages for the turn under way into the transcript, in the order of their arrival. */
function joinMessages(state: RunState, at: number): RunState {
  const { taken, inbox } = takeMessages(state.inbox, state.turn.number);
  if (taken.length === 0) return state;
  const { notes = [], ...before } = withRequesters(dropRepairBranch(state), taken);
  const noted = notes.reduce<RunState>(
    (next, text) => appendMessage(next, at, { role: 'user', text, origin: 'perdure' }),
    before,
  );
  return taken.reduce<RunState>(
    (next, { id, text, pinned, attachments, by }) =>
      appendMessage(next, at, {
        role: 'user',
        text,
        ...(attachments && { attachments }),
        id,
        ...(pinned && { pinned }),
        ...(by !== undefined && { by }),
      }),
    { ...noted, inbox },
  );
}

/** Remembers who asks in this turn: rules may say that others have to decide. */
function withRequesters(state: RunState, taken: readonly Incoming[]): RunState {
  const names = taken.flatMap(({ by }) => (by === undefined ? [] : [by]));
  if (names.length === 0) return state;
  return withTurn(state, { by: [...new Set([...(state.turn.by ?? []), ...names])] });
}
