import { takeArtefacts } from './artefacts.js';
import { completeBatch, fillBatch, openBatch, waitsOver, wakes } from './batch.js';
import { refusal, type CallResult } from './calls.js';
import { end, prune, say, withTurn } from './change.js';
import { canCompact, compact } from './compaction.js';
import { CLOSING_INSTRUCTION, composeAnswer } from './compose.js';
import { control } from './control.js';
import { addDocuments } from './documents.js';
import { cancelled, completed, failed, stopped } from './ends.js';
import type { Interruption, RunEvent } from './events.js';
import { waitsFor } from './inbox.js';
import { joinMessages } from './join.js';
import { judge } from './judge.js';
import { reserve } from './limits.js';
import { callId, type ToolCall } from './messages.js';
import type { FailReason, StopReason } from './outcome.js';
import { spoken, type ParsedAnswer, type RecordedReply } from './reply.js';
import { settle, tell } from './settle.js';
import { addReply, addSpent, countCalls } from './spend.js';
import {
  freshTurn,
  inTurn,
  RECENT_CHARACTERS,
  RECENT_TURNS,
  type EndedTurn,
  type RunState,
} from './state.js';

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
      return end(state, failed(state, { reason: 'error', message: event.message }));
    case 'model-replied':
      return state.turn.closing === null ? decided(state, event) : closed(state, event);
    case 'model-failed':
      return modelFailed(state, event);
    case 'calls-finished':
      return callsFinished(state, event);
    case 'time-passed':
      return timePassed(state, event.at);
    case 'interrupted':
      return inTurn(state) ? interrupted(state, event) : state;
    case 'closing-begun':
      return say(withTurn(prune(state), { closing: event.reason }), event.at, {
        role: 'user',
        text: CLOSING_INSTRUCTION,
        origin: 'perdure',
      });
    case 'limit-ended':
      return limitEnded(prune(state), event.reason);
    case 'compacted':
      return compact(state, event);
    case 'turn-recorded':
      return recordTurn(state, event.at);
    default:
      return control(state, event);
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
  if (closing !== null) return end(state, stopped(state, closing, composeAnswer(state, closing)));
  // A repair has outgrown the model's window: it begins anew, with the attempts that are left.
  if (event.reason === 'context_too_long' && state.turn.branch) return prune(state);
  if (event.reason === 'context_too_long' && canCompact(state)) {
    return { ...state, compaction: { ...state.compaction, wanted: true } };
  }
  return end(prune(state), failed(state, event));
}

/** A deciding call came back: an answer, or calls to execute. */
function decided(state: RunState, event: { reply: RecordedReply; at: number }): RunState {
  const { reply } = event;
  const clippedBy = reply.finish === 'length' ? reserve(state).clippedBy : null;
  const asking = (reply.calls ?? []).length > 0;
  // A repair is no step of its own: it is bounded by its attempts.
  const deciding = asking || !state.turn.branch;
  const paid = addReply(state, { reply, deciding });
  const counted = asking ? prune(paid) : paid;
  const step = counted.turn.spent.steps;
  const calls = (reply.calls ?? []).map((call, index): ToolCall => ({
    ...call,
    id: callId({ turn: counted.turn.number, step, index, fork: counted.forkedFrom?.at }),
    ...(reply.finish === 'length' && { problem: cutOff }),
  }));
  const judged = judgedAnswer(counted, { reply, clippedBy });
  if (judged !== null) return judge(counted, { reply, parsed: judged, at: event.at });
  const said = say(withTurn(prune(counted), { clippedBy }), event.at, {
    ...spoken(reply),
    ...(calls.length > 0 && { calls }),
  });
  if (calls.length > 0) {
    const { batch, refused } = openBatch(said, { step, calls, at: event.at });
    const opened = withTurn(said, {
      batch,
      ...(refused !== null && { callsRefused: refused }),
    });
    return settle(opened, event.at);
  }
  if (clippedBy !== null) return said;
  // Somebody has said something meanwhile; the turn is over when that is answered too.
  if (reply.finish === 'stop' && waitsFor(said.inbox, said.turn.number)) return said;
  return end(said, answerEnd(said, reply));
}

/** What is to be judged by the agent's contract: an answer that would end the turn. */
function judgedAnswer(
  state: RunState,
  { reply, clippedBy }: { reply: RecordedReply; clippedBy: unknown },
): ParsedAnswer | null {
  const { parsed, finish, calls = [] } = reply;
  if (parsed === undefined || finish !== 'stop' || calls.length > 0) return null;
  return clippedBy !== null || waitsFor(state.inbox, state.turn.number) ? null : parsed;
}

const cutOff = {
  type: 'truncated',
  message:
    'not executed: the reply was cut off by the output limit; ask again with shorter arguments',
} as const;

function answerEnd(state: RunState, reply: RecordedReply) {
  const { definition } = state.config;
  switch (reply.finish) {
    case 'stop':
    case 'calls':
      if (definition.onPlainText === 'fail' && definition.tools.length > 0) {
        const message = plainTextHint(definition.model);
        return failed(state, { reason: 'invalid_output', message, answer: reply.text });
      }
      return completed(state, { reason: 'answer', answer: reply.text, blob: reply.blob });
    case 'length':
      return failed(state, { reason: 'truncated', message: truncatedHint, answer: reply.text });
    case 'filtered':
      return failed(state, { reason: 'filtered', message: filteredHint, answer: reply.text });
    case 'refused':
      return failed(state, { reason: 'refused', message: refusedHint, answer: reply.text });
  }
}

function plainTextHint(model: string): string {
  return (
    `model "${model}" answered in text where a call was wanted; set toolChoice "required", or ` +
    'decide "schema" where its server ignores that (Ollama, llama.cpp)'
  );
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
  const said = say(counted, event.at, spoken(event.reply));
  const { parsed } = event.reply;
  const output = parsed?.ok ? { output: parsed.output } : {};
  return end(said, { ...stopped(said, reason, text), ...(blob && { blob }), ...output });
}

function callsFinished(
  state: RunState,
  event: { results: readonly CallResult[]; at: number },
): RunState {
  if (state.turn.batch === null) return state;
  return settle(takeResults(state, event.results), event.at);
}

function timePassed(state: RunState, at: number): RunState {
  const results = waitsOver(state, at);
  const woken = wakes(state) ? withTurn(state, { wokenBy: state.inbox.count ?? 0 }) : state;
  return callsFinished(woken, { results, at });
}

function takeResults(state: RunState, results: readonly CallResult[]): RunState {
  if (state.turn.batch === null) return state;
  const taken = takeArtefacts(state, state.turn.batch, results);
  const batch = fillBatch(state.turn.batch, taken.results);
  const executed = results.filter((result) => result.executed).length;
  const counted = results.reduce(addSpent, countCalls(taken.state, executed));
  return withTurn(counted, { batch });
}

/** Work in flight was broken off: every open call gets a result that says so. */
function interrupted(
  state: RunState,
  event: { by: Interruption; results: readonly CallResult[]; at: number },
): RunState {
  const cancelling = event.by !== 'wallMs';
  const why = cancelling ? 'cancelled by a person' : 'broken off: the time limit was reached';
  const taken = takeResults(prune(state), event.results);
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
  if (cancelling) return end(told, cancelled(told));
  if (told.turn.closing === null) return withTurn(told, { deadlineReached: true });
  return end(told, stopped(told, told.turn.closing, composeAnswer(told, told.turn.closing)));
}

function limitEnded(state: RunState, reason: StopReason): RunState {
  if (state.config.definition.onLimit !== 'fail') {
    return end(state, stopped(state, reason, composeAnswer(state, reason)));
  }
  const message = `${reason}: the limit was reached, and this agent has onLimit "fail"`;
  return end(state, { ...failed(state, { reason: 'limit', message }), limit: reason });
}
