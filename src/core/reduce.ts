import { nameArtifacts } from './artifacts/artifacts.js';
import { fillBatch, finishedWaits, hasWakingMessage } from './calls/batch.js';
import { refusal, type CallResult } from './calls/call-result.js';
import { appendMessage, dropRepairBranch, endTurn, withTurn } from './change.js';
import { canCompact, compact } from './compaction.js';
import { CLOSING_INSTRUCTION, composeAnswer } from './compose.js';
import { applyControlEvent } from './control.js';
import { addDocuments } from './documents.js';
import { cancelled, failed, stopped } from './make-outcome.js';
import type { Interruption, RunEvent } from './events.js';
import type { FailReason, StopReason } from './outcome.js';
import { onClosingReply, onReply } from './on-reply.js';
import { completeBatch, closeBatch } from './calls/complete-batch.js';
import { addSpent, countCalls } from './spend.js';
import {
  freshTurn,
  inTurn,
  RECENT_CHARACTERS,
  RECENT_TURNS,
  type Batch,
  type EndedTurn,
  type RunState,
} from './state.js';
import { take } from './inbox.js';

/** The next state of a run. Pure: equal states and events give equal states, on every machine. */
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
      return state.turn.closing === null ? onReply(state, event) : onClosingReply(state, event);
    case 'model-failed':
      return modelFailed(state, event);
    case 'call-finished':
      return takeResult(state, event.result);
    case 'calls-finished':
      return completeBatch(state, event.at);
    case 'time-passed':
      return timePassed(state, event.at);
    case 'interrupted':
      return inTurn(state) ? interrupted(state, event) : state;
    case 'closing-begun':
      return appendMessage(withTurn(dropRepairBranch(state), { closing: event.reason }), event.at, {
        role: 'user',
        text: CLOSING_INSTRUCTION,
        origin: 'perdure',
      });
    case 'limit-ended':
      return limitEnded(dropRepairBranch(state), event.reason);
    case 'compacted':
      return compact(state, event);
    case 'turn-recorded':
      return recordTurn(state, event.at);
    default:
      return applyControlEvent(state, event);
  }
}

function beginTurn(state: RunState, at: number): RunState {
  const number = state.inbox.waiting[0]?.turn ?? state.turn.number + 1;
  return joinMessages({ ...state, turn: freshTurn(number, state.config.price, at) }, at);
}

/** What joined too late for another model call is not lost: the next turn reads it. */
function recordTurn(state: RunState, at: number): RunState {
  const { outcome, number: turn } = state.turn;
  const joined = joinMessages(withTurn(state, { recorded: true }), at);
  if (outcome === null) return joined;
  return { ...joined, recent: newest([...state.recent, { turn, outcome }]) };
}

/** As many as are remembered, and together not more than a message may be. */
function newest(turns: readonly EndedTurn[]): readonly EndedTurn[] {
  let characters = 0;
  const from = turns.findLastIndex(({ outcome }) => {
    characters += JSON.stringify(outcome).length;
    return characters > RECENT_CHARACTERS;
  });
  return turns.slice(Math.max(from + 1, turns.length - RECENT_TURNS));
}

function modelFailed(state: RunState, event: { reason: FailReason; message: string }): RunState {
  const { closing } = state.turn;
  if (closing !== null)
    return endTurn(state, stopped(state, closing, composeAnswer(state, closing)));
  // A repair has outgrown the model's window: it begins anew, with the attempts that are left.
  if (event.reason === 'context_too_long' && state.turn.branch) return dropRepairBranch(state);
  if (event.reason === 'context_too_long' && canCompact(state)) {
    return { ...state, compaction: { ...state.compaction, wanted: true } };
  }
  return endTurn(dropRepairBranch(state), failed(state, event));
}

function timePassed(state: RunState, at: number): RunState {
  const results = finishedWaits(state, at);
  const woken = hasWakingMessage(state) ? withTurn(state, { wokenBy: state.inbox.count ?? 0 }) : state;
  return completeBatch(results.reduce(takeResult, woken), at);
}

/** Records and counts one result. A call that has one already keeps it. */
function takeResult(state: RunState, result: CallResult): RunState {
  const { batch } = state.turn;
  if (batch === null || !isOpen(batch, result.id)) return state;
  const counted = addSpent(countCalls(state, result.executed ? 1 : 0), result);
  return nameArtifacts(withTurn(counted, { batch: fillBatch(batch, result) }));
}

function isOpen({ calls, results }: Batch, id: string): boolean {
  const index = calls.findIndex((call) => call.id === id);
  return index !== -1 && results[index] === null;
}

/** Work in flight was broken off: every open call gets a result that says so. */
function interrupted(state: RunState, event: { by: Interruption; at: number }): RunState {
  const cancelling = event.by !== 'wallMs';
  const why = cancelling ? 'cancelled by a person' : 'broken off: the time limit was reached';
  const told = closeBatch(dropRepairBranch(state), event.at, (call) =>
    refusal(call.id, { type: 'cancelled', message: why }),
  );
  if (cancelling) return endTurn(told, cancelled(told));
  if (told.turn.closing === null) return withTurn(told, { deadlineReached: true });
  return endTurn(told, stopped(told, told.turn.closing, composeAnswer(told, told.turn.closing)));
}

function limitEnded(state: RunState, reason: StopReason): RunState {
  if (state.config.definition.onLimit !== 'fail') {
    return endTurn(state, stopped(state, reason, composeAnswer(state, reason)));
  }
  const message = `${reason}: the limit was reached, and this agent has onLimit "fail"`;
  return endTurn(state, { ...failed(state, { reason: 'limit', message }), limit: reason });
}

/** What was said to the turn under way becomes part of the transcript, in the order in which it came. */
function joinMessages(state: RunState, at: number): RunState {
  const { taken, inbox } = take(state.inbox, state.turn.number);
  if (taken.length === 0) return state;
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
    { ...dropRepairBranch(state), inbox },
  );
}
