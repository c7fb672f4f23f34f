import { openBatch } from './calls/open-batch.js';
import type { AgentDefinition } from './definition/definition.js';
import { appendMessage, dropRepairBranch, endTurn, leaveOut, withTurn } from './change.js';
import { composeAnswer } from './compose.js';
import { completed, failed, stopped } from './make-outcome.js';
import { hasMessagesFor } from './inbox.js';
import { reserve } from './limits.js';
import { callId, type ToolCall } from './transcript/messages.js';
import { toAssistantMessage, type ParsedAnswer, type RecordedReply } from './reply.js';
import { failAtNode, namingNode } from './graph/finish-node.js';
import { followDecision, followOutput } from './graph/follow-decision.js';
import { currentDefinition } from './named-prompts/turn-definition.js';
import { currentNode } from './graph/node-tool.js';
import { completeBatch } from './calls/complete-batch.js';
import { addReply } from './spend.js';
import type { RunState } from './state.js';
import type { Outcome, StopReason } from './outcome.js';
import { closingReason, isRepairing, type Turn } from './turn.js';
import { repairText } from './text/repair-text.js';

/** Applies the reply of a deciding call: an answer, or calls to execute. */
export function onReply(state: RunState, event: { reply: RecordedReply; at: number }): RunState {
  const { reply } = event;
  const clippedBy = reply.finish === 'length' ? reserve(state).clippedBy : null;
  const asking = (reply.calls ?? []).length > 0;
  // A repair is not a step; the number of attempts limits it.
  const deciding = asking || !isRepairing(state);
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
  const kept = dropRepairBranch(counted);
  const next = appendMessage(
    withTurn(withoutWithheld(kept, reply), limitHit(counted, clippedBy)),
    event.at,
    {
      ...toAssistantMessage(reply),
      ...(reply.finish === 'filtered' && !asking && { refused: 'message' as const }),
      ...(calls.length > 0 && { calls }),
    },
  );
  if (calls.length > 0) {
    const { batch, refused } = openBatch(next, {
      step,
      calls,
      at: event.at,
      ...(reply.span !== undefined && { span: reply.span }),
    });
    const opened = withTurn(next, {
      phase: { type: 'acting', batch },
      ...limitHit(next, refused),
    });
    return completeBatch(followDecision(opened, event), event.at);
  }
  if (clippedBy !== null) return next;
  // Another message has joined the turn, so the turn ends only after that one is answered.
  if (reply.finish === 'stop' && hasMessagesFor(next.inbox, next.turn.number)) return next;
  if (reply.finish === 'stop' && inGraph(next)) return followDecision(next, event);
  const end = answerEnd(next, reply);
  const failure = { reason: end.reason, message: end.error ?? '', at: event.at };
  if (currentNode(next) === undefined) return endTurn(next, end);
  const error = namingNode(next, failure.message);
  return failAtNode(next, failure) ?? endTurn(next, { ...end, error });
}

/**
 * Removes from the prompt what the model refused or the provider's filter withheld, because it
 * would be refused again in every later turn.
 */
function withoutWithheld(state: RunState, { finish, calls = [] }: RecordedReply): RunState {
  const isWithheld = finish === 'filtered' || finish === 'refused';
  return isWithheld && calls.length === 0 ? leaveOut(state, 'message') : state;
}

/**
 * Whether the run is in a graph, where a text is an exit of the node and not the end of the turn.
 */
function inGraph(state: RunState): boolean {
  return currentNode(state) !== undefined;
}

/** Returns the turn's limit: the first one that it hit. */
function limitHit({ turn }: RunState, limit: StopReason | null): Pick<Turn, 'limit'> {
  return { limit: turn.limit ?? limit };
}

/** Returns an answer that would end the turn and must fit a contract; null for any other reply. */
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
  const definition = currentDefinition(state);
  switch (reply.finish) {
    case 'stop':
    case 'calls':
      if (demandsCall(definition)) {
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

/** Whether the turn must call a tool. A turn without callable tools can only answer. */
function demandsCall({ onPlainText, tools, toolChoice }: AgentDefinition): boolean {
  return onPlainText === 'fail' && tools.length > 0 && toolChoice !== 'none';
}

function plainTextHint(model: string): string {
  return (
    `model "${model}" answered in text instead of calling a tool; set toolChoice "required", or ` +
    'decide "schema" where its server ignores that (Ollama, llama.cpp)'
  );
}

const truncatedHint =
  'the reply was cut off by the output limit of the model; raise settings.maxOutputTokens';
const filteredHint = "the provider's content filter withheld the reply";
const refusedHint = 'the model refused to answer';

/** Applies the reply of the closing call. Tool calls in it are never executed. */
export function onClosingReply(
  state: RunState,
  event: { reply: RecordedReply; at: number },
): RunState {
  const reason = closingReason(state) ?? 'steps';
  const counted = addReply(state, { reply: event.reply, deciding: false });
  const usable = event.reply.finish !== 'filtered' && event.reply.text.trim() !== '';
  if (!usable) {
    const answer = composeAnswer(counted, reason);
    const left = withoutWithheld(counted, event.reply);
    return endTurn(left, stopped(left, reason, answer));
  }
  const { text, blob } = event.reply;
  const next = appendMessage(counted, event.at, toAssistantMessage(event.reply));
  const { parsed } = event.reply;
  const output = parsed?.ok ? { output: parsed.output } : bestEffort(noteEffort(next, parsed));
  return endTurn(next, { ...stopped(next, reason, text), ...(blob && { blob }), ...output });
}

/** Default maximum number of answers in a turn. */
const DEFAULT_ATTEMPTS = 10;

/**
 * Applies an answer that must fit a contract. A fitting answer ends the turn. Any other opens or
 * extends a side branch that shows the model the problem, as often as `attempts` allows.
 */
function validateAnswer(
  state: RunState,
  { reply, parsed, at }: { reply: RecordedReply; parsed: ParsedAnswer; at: number },
): RunState {
  const { attempts = DEFAULT_ATTEMPTS, texts } = currentDefinition(state);
  const refused = (state.turn.refusedAnswers ?? 0) + (parsed.ok ? 0 : 1);
  const counted = withTurn(noteEffort(state, parsed), { refusedAnswers: refused });
  if (parsed.ok || refused >= attempts) return accept(counted, { reply, parsed, at });
  const opened = openBranch(counted);
  const answered = appendMessage(opened, at, { ...toAssistantMessage(reply), side: true });
  const text = repairText(parsed.problem, { attempt: refused, attempts, text: texts?.repair });
  return appendMessage(answered, at, { role: 'user', text, origin: 'perdure', side: true });
}

function openBranch(state: RunState): RunState {
  if (isRepairing(state)) return state;
  const { transcript, compaction } = state;
  const { head, tokens } = transcript;
  const { promptTokens } = compaction;
  const branch = { messages: transcript.messages.length, head, tokens, promptTokens };
  return withTurn(state, { phase: { type: 'repairing', branch } });
}

/**
 * Ends the turn with this answer. The answer joins the transcript; the preceding side branch does
 * not.
 */
function accept(
  state: RunState,
  { reply, parsed, at }: { reply: RecordedReply; parsed: ParsedAnswer; at: number },
): RunState {
  const { text, blob } = reply;
  const next = appendMessage(dropRepairBranch(state), at, toAssistantMessage(reply));
  // The next node that requests an answer starts with all its attempts.
  if (inGraph(next)) return followOutput(withTurn(next, { refusedAnswers: 0 }), { parsed, at });
  const answer = { reason: 'answer', answer: text, blob } as const;
  if (parsed.ok) return endTurn(next, completed(next, { ...answer, output: parsed.output }));
  if (keepsEffort(state)) {
    const effort = bestEffort(next) ?? { issues: [parsed.problem] };
    return endTurn(next, { ...completed(next, answer), ...effort });
  }
  const message = `no answer fits the agent's output: ${parsed.problem}`;
  return endTurn(next, failed(next, { reason: 'invalid_output', message, answer: text }));
}

function keepsEffort({ config }: RunState): boolean {
  return config.definition.onInvalid === 'best_effort';
}

/** Records the readable part of a refused answer, in case no answer fits. */
function noteEffort(state: RunState, parsed: ParsedAnswer | undefined): RunState {
  if (parsed === undefined || parsed.ok || parsed.output === undefined) return state;
  if (!keepsEffort(state)) return state;
  return withTurn(state, { bestEffort: { output: parsed.output, issue: parsed.problem } });
}

/** Returns the newest partially readable answer, as fields of an outcome; null if there is none. */
function bestEffort({ turn }: RunState): Pick<Outcome, 'output' | 'issues'> | null {
  const { bestEffort: effort } = turn;
  return effort === undefined ? null : { output: effort.output, issues: [effort.issue] };
}
