import { openBatch } from './calls/batch.js';
import { end, prune, say, withTurn } from './change.js';
import { composeAnswer } from './compose.js';
import { completed, failed, stopped } from './ends.js';
import { waitsFor } from './inbox.js';
import { judge } from './judge.js';
import { reserve } from './limits.js';
import { callId, type ToolCall } from './transcript/messages.js';
import { spoken, type ParsedAnswer, type RecordedReply } from './reply.js';
import { settle } from './calls/settle.js';
import { addReply } from './spend.js';
import type { RunState } from './state.js';

/** A deciding call came back: an answer, or calls to execute. */
export function decided(state: RunState, event: { reply: RecordedReply; at: number }): RunState {
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
export function closed(state: RunState, event: { reply: RecordedReply; at: number }): RunState {
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
