import { completeBatch, fillBatch, openBatch } from './batch.js';
import { refusal, type CallResult } from './calls.js';
import { end, say, withTurn } from './change.js';
import { CLOSING_INSTRUCTION, composeAnswer } from './compose.js';
import { cancelled, completed, failed, stopped } from './ends.js';
import type { Interruption, RunEvent } from './events.js';
import { reserve } from './limits.js';
import { callId, type ToolCall } from './messages.js';
import type { StopReason } from './outcome.js';
import type { RecordedReply } from './reply.js';
import { settle, tell } from './settle.js';
import { addReply, countCalls } from './spend.js';
import { freshTurn, type RunState } from './state.js';

/** The next state of a run. Pure: equal states and events give equal states, on every machine. */
export function reduce(state: RunState, event: RunEvent): RunState {
  switch (event.type) {
    case 'message-received':
      return beginTurn(state, event);
    case 'model-replied':
      return state.turn.closing === null ? decided(state, event) : closed(state, event);
    case 'model-failed':
      return state.turn.closing === null
        ? end(state, failed(state, event))
        : end(state, stopped(state, state.turn.closing, composeAnswer(state, state.turn.closing)));
    case 'calls-finished':
      return callsFinished(state, event);
    case 'interrupted':
      return interrupted(state, event);
    case 'closing-begun':
      return say({ ...state, turn: { ...state.turn, closing: event.reason } }, event.at, {
        role: 'user',
        text: CLOSING_INSTRUCTION,
        origin: 'perdure',
      });
    case 'limit-ended':
      return end(state, limitEnd(state, event.reason));
  }
}

function beginTurn(state: RunState, event: { text: string; at: number }): RunState {
  const turn = freshTurn(state.turn.number + 1, state.config.price);
  return say({ ...state, turn }, event.at, { role: 'user', text: event.text });
}

/** A deciding call came back: an answer, or calls to execute. */
function decided(state: RunState, event: { reply: RecordedReply; at: number }): RunState {
  const { reply } = event;
  const clippedBy = reply.finish === 'length' ? reserve(state).clippedBy : null;
  const counted = addReply(state, { reply, deciding: true });
  const step = counted.turn.spent.steps;
  const calls = (reply.calls ?? []).map((call, index): ToolCall => ({
    ...call,
    id: callId({ turn: counted.turn.number, step, index }),
    ...(reply.finish === 'length' && { problem: cutOff }),
  }));
  const said = say(withTurn(counted, { clippedBy }), event.at, {
    role: 'assistant',
    text: reply.text,
    ...(reply.blob && { blob: reply.blob }),
    ...(calls.length > 0 && { calls }),
  });
  if (calls.length > 0) {
    const { batch, refused } = openBatch(said, { step, calls });
    const opened = withTurn(said, {
      batch,
      ...(refused && { callsRefused: 'toolCalls' as const }),
    });
    return settle(opened, event.at);
  }
  if (clippedBy !== null) return said;
  return end(said, answerEnd(said, reply));
}

const cutOff = {
  type: 'truncated',
  message:
    'not executed: the reply was cut off by the output limit; ask again with shorter arguments',
} as const;

function answerEnd(state: RunState, reply: RecordedReply) {
  switch (reply.finish) {
    case 'stop':
    case 'calls':
      return completed(state, { reason: 'answer', answer: reply.text, blob: reply.blob });
    case 'length':
      return failed(state, { reason: 'truncated', message: truncatedHint, answer: reply.text });
    case 'filtered':
      return failed(state, { reason: 'filtered', message: filteredHint, answer: reply.text });
    case 'refused':
      return failed(state, { reason: 'refused', message: refusedHint, answer: reply.text });
  }
}

const truncatedHint =
  'the reply was cut off by the output limit of the model; raise settings.maxOutputTokens';
const filteredHint = "the provider's content filter withheld the reply";
const refusedHint = 'the model refused to answer';

/** The closing call came back; calls in it are not executed, whatever the model says. */
function closed(state: RunState, event: { reply: RecordedReply; at: number }): RunState {
  const reason = state.turn.closing ?? 'steps';
  const counted = addReply(state, { reply: event.reply, deciding: false });
  const usable = event.reply.finish !== 'filtered' && event.reply.text.trim() !== '';
  if (!usable) return end(counted, stopped(counted, reason, composeAnswer(counted, reason)));
  const { text, blob } = event.reply;
  const said = say(counted, event.at, { role: 'assistant', text, ...(blob && { blob }) });
  return end(said, { ...stopped(said, reason, text), ...(blob && { blob }) });
}

function callsFinished(
  state: RunState,
  event: { results: readonly CallResult[]; at: number },
): RunState {
  if (state.turn.batch === null) return state;
  return settle(takeResults(state, event.results), event.at);
}

function takeResults(state: RunState, results: readonly CallResult[]): RunState {
  if (state.turn.batch === null) return state;
  const batch = fillBatch(state.turn.batch, results);
  const executed = results.filter((result) => result.executed).length;
  return withTurn(countCalls(state, executed), { batch });
}

/** Work in flight was broken off: every open call gets a result that says so. */
function interrupted(
  state: RunState,
  event: { by: Interruption; results: readonly CallResult[]; at: number },
): RunState {
  const why =
    event.by === 'cancel' ? 'cancelled by a person' : 'broken off: the time limit was reached';
  const taken = takeResults(state, event.results);
  const { batch } = taken.turn;
  const told =
    batch === null
      ? taken
      : tell(taken, {
          batch,
          results: completeBatch(batch, (call) =>
            refusal(call.id, { type: 'cancelled', message: why }),
          ),
          at: event.at,
        });
  if (event.by === 'cancel') return end(told, cancelled(told));
  if (told.turn.closing === null) return withTurn(told, { deadlineReached: true });
  return end(told, stopped(told, told.turn.closing, composeAnswer(told, told.turn.closing)));
}

function limitEnd(state: RunState, reason: StopReason) {
  if (state.config.definition.onLimit !== 'fail') {
    return stopped(state, reason, composeAnswer(state, reason));
  }
  const message = `${reason}: the limit was reached, and this agent has onLimit "fail"`;
  return { ...failed(state, { reason: 'limit', message }), limit: reason };
}
