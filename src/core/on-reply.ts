import { openBatch } from './calls/batch.js';
import { appendMessage, dropRepairBranch, endTurn, withTurn } from './change.js';
import { composeAnswer } from './compose.js';
import { completed, failed, stopped } from './make-outcome.js';
import { hasMessagesFor } from './inbox.js';
import { reserve } from './limits.js';
import { callId, type ToolCall } from './transcript/messages.js';
import { toAssistantMessage, type ParsedAnswer, type RecordedReply } from './reply.js';
import { completeBatch } from './calls/complete-batch.js';
import { addReply } from './spend.js';
import type { RunState } from './state.js';
import { repairText } from './text/repair-text.js';

/** A deciding call came back: an answer, or calls to execute. */
export function onReply(state: RunState, event: { reply: RecordedReply; at: number }): RunState {
  const { reply } = event;
  const clippedBy = reply.finish === 'length' ? reserve(state).clippedBy : null;
  const asking = (reply.calls ?? []).length > 0;
  // A repair is no step of its own: it is bounded by its attempts.
  const deciding = asking || !state.turn.branch;
  const paid = addReply(state, { reply, deciding });
  const counted = asking ? dropRepairBranch(paid) : paid;
  const step = counted.turn.spent.steps;
  const calls = (reply.calls ?? []).map((call, index): ToolCall => ({
    ...call,
    id: callId({ turn: counted.turn.number, step, index, fork: counted.forkedFrom?.at }),
    ...(reply.finish === 'length' && { problem: cutOff }),
  }));
  const parsed = answerToValidate(counted, { reply, clippedBy });
  if (parsed !== null) return validateAnswer(counted, { reply, parsed, at: event.at });
  const said = appendMessage(withTurn(dropRepairBranch(counted), { clippedBy }), event.at, {
    ...toAssistantMessage(reply),
    ...(calls.length > 0 && { calls }),
  });
  if (calls.length > 0) {
    const { batch, refused } = openBatch(said, { step, calls, at: event.at });
    const opened = withTurn(said, {
      batch,
      ...(refused !== null && { callsRefused: refused }),
    });
    return completeBatch(opened, event.at);
  }
  if (clippedBy !== null) return said;
  // Somebody has said something meanwhile; the turn is over when that is answered too.
  if (reply.finish === 'stop' && hasMessagesFor(said.inbox, said.turn.number)) return said;
  return endTurn(said, answerEnd(said, reply));
}

/** What is to be judged by the agent's contract: an answer that would end the turn. */
function answerToValidate(
  state: RunState,
  { reply, clippedBy }: { reply: RecordedReply; clippedBy: unknown },
): ParsedAnswer | null {
  const { parsed, finish, calls = [] } = reply;
  if (parsed === undefined || finish !== 'stop' || calls.length > 0) return null;
  return clippedBy !== null || hasMessagesFor(state.inbox, state.turn.number) ? null : parsed;
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
export function onClosingReply(
  state: RunState,
  event: { reply: RecordedReply; at: number },
): RunState {
  const reason = state.turn.closing ?? 'steps';
  const counted = addReply(state, { reply: event.reply, deciding: false });
  const usable = event.reply.finish !== 'filtered' && event.reply.text.trim() !== '';
  if (!usable) return endTurn(counted, stopped(counted, reason, composeAnswer(counted, reason)));
  const { text, blob } = event.reply;
  const said = appendMessage(counted, event.at, toAssistantMessage(event.reply));
  const { parsed } = event.reply;
  const output = parsed?.ok ? { output: parsed.output } : {};
  return endTurn(said, { ...stopped(said, reason, text), ...(blob && { blob }), ...output });
}

/** Answers in all that a turn may give, where its agent does not say. */
const ATTEMPTS = 10;

/**
 * An answer under contract: it ends the turn when it keeps to it. Else it opens, or goes on with, a
 * side branch in which the model is told what is wrong, as often as `attempts` allows.
 */
function validateAnswer(
  state: RunState,
  { reply, parsed, at }: { reply: RecordedReply; parsed: ParsedAnswer; at: number },
): RunState {
  const { attempts = ATTEMPTS } = state.config.definition;
  const refused = (state.turn.refusedAnswers ?? 0) + (parsed.ok ? 0 : 1);
  const counted = withTurn(state, { refusedAnswers: refused });
  if (parsed.ok || refused >= attempts) return accept(counted, { reply, parsed, at });
  const opened = openBranch(counted);
  const answered = appendMessage(opened, at, { ...toAssistantMessage(reply), side: true });
  const text = repairText(parsed.problem, { attempt: refused, attempts });
  return appendMessage(answered, at, { role: 'user', text, origin: 'perdure', side: true });
}

function openBranch(state: RunState): RunState {
  if (state.turn.branch) return state;
  const { transcript, compaction } = state;
  const { head, tokens } = transcript;
  const { promptTokens } = compaction;
  const branch = { messages: transcript.messages.length, head, tokens, promptTokens };
  return withTurn(state, { branch });
}

/** The last answer becomes part of the transcript; the side branch before it does not. */
function accept(
  state: RunState,
  { reply, parsed, at }: { reply: RecordedReply; parsed: ParsedAnswer; at: number },
): RunState {
  const { text, blob } = reply;
  const said = appendMessage(dropRepairBranch(state), at, toAssistantMessage(reply));
  const answer = { reason: 'answer', answer: text, blob } as const;
  if (parsed.ok) return endTurn(said, completed(said, { ...answer, output: parsed.output }));
  if (state.config.definition.onInvalid === 'best_effort') {
    const outcome = completed(said, { ...answer, output: parsed.output });
    return endTurn(said, { ...outcome, issues: [parsed.problem] });
  }
  const message = `no answer kept to the contract: ${parsed.problem}`;
  return endTurn(said, failed(said, { reason: 'invalid_output', message, answer: text }));
}
