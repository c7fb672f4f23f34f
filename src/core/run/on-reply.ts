import { openBatch } from '../calls/open-batch.js';
import { type AgentDefinition, beginOf, fillText } from '../definition/definition.js';
import { hooksOf } from '../graph/hooks.js';
import { byteLength, hasMessagesFor } from '../input/inbox.js';
import { composeAnswer } from '../rules/documents.js';
import { reserve } from '../rules/limits.js';
import { addReply } from '../rules/spending.js';
import {
  appendMessage,
  completed,
  dropRepairBranch,
  endTurn,
  failed,
  leaveOut,
  stopped,
  withTurn,
} from '../state/change.js';
import type { RunState } from '../state/state.js';
import { currentDefinition, currentNode } from '../state/turn-definition.js';
import { type Turn, closingReason, isRepairing } from '../state/turn.js';
import { headOf } from '../text/text.js';
import { type ToolCall, callId } from '../transcript/messages.js';
import {
  type Outcome,
  type ParsedAnswer,
  type RecordedReply,
  type StopReason,
  toAssistantMessage,
} from '../transcript/outcome.js';
import { closeBatch, completeBatch } from './complete-batch.js';

const PROBLEM_BYTES = 4 * 1024;

const REPAIR =
  'Your answer was not accepted (attempt {{attempt}} of {{attempts}}).\n\n{{problem}}\n\n' +
  '{{last}}Send the whole answer again, corrected, and nothing else.';

/** The number of an answer among the allowed answers of a turn. */
interface Attempt {
  /** The number of the failed answer, from 1. */
  readonly attempt: number;
  readonly attempts: number;
  /** The author's text; default: perdure's. */
  readonly text?: string | undefined;
}

/** Returns the request to repair an answer. */
export function repairText(problem: string, { attempt, attempts, text = REPAIR }: Attempt): string {
  const bytes = byteLength(problem);
  const shown =
    bytes <= PROBLEM_BYTES ? problem : `${head(problem)}\n[… cut, ${bytes} bytes in all]`;
  const last = attempts - attempt === 1 ? 'This is the last attempt. ' : '';
  return fillText(text, { attempt, attempts, problem: shown.trim(), last });
}

/** Returns the beginning of an agent's repair requests, by which they are found in a prompt. */
export function repairBegin({ texts }: Pick<AgentDefinition, 'texts'>): string {
  return beginOf(texts?.repair ?? REPAIR);
}

/** Returns the beginning of a text in whole characters, with room for the note after it. */
function head(text: string): string {
  let shown = headOf(text, PROBLEM_BYTES - 64);
  while (byteLength(shown) > PROBLEM_BYTES - 64) {
    shown = headOf(shown, Math.floor(shown.length * 0.9));
  }
  return shown;
}

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
    const followed = hooksOf(opened)?.replied(opened, { ...event, close: closeBatch });
    return completeBatch(followed ?? opened, event.at);
  }
  if (clippedBy !== null) return next;
  // Another message has joined the turn, so the turn ends only after that one is answered.
  if (reply.finish === 'stop' && hasMessagesFor(next.inbox, next.turn.number)) return next;
  const hooks = hooksOf(next);
  if (reply.finish === 'stop') {
    const followed = hooks?.replied(next, { ...event, close: closeBatch }) ?? null;
    if (followed !== null) return followed;
  }
  const end = answerEnd(next, reply);
  if (hooks === null || currentNode(next) === undefined) return endTurn(next, end);
  const failure = { reason: end.reason, message: end.error ?? '', at: event.at };
  const error = hooks.named(next, failure.message);
  return hooks.failed(next, failure) ?? endTurn(next, { ...end, error });
}

/**
 * Removes from the prompt what the model refused or the provider's filter withheld, because it
 * would be refused again in every later turn.
 */
function withoutWithheld(state: RunState, { finish, calls = [] }: RecordedReply): RunState {
  const isWithheld = finish === 'filtered' || finish === 'refused';
  return isWithheld && calls.length === 0 ? leaveOut(state, 'message') : state;
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
  const { head: digest, tokens } = transcript;
  const { promptTokens } = compaction;
  const branch = { messages: transcript.messages.length, head: digest, tokens, promptTokens };
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
  const fresh = withTurn(next, { refusedAnswers: 0 });
  const followed = hooksOf(next)?.answered(fresh, { parsed, at }) ?? null;
  if (followed !== null) return followed;
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
