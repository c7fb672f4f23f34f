import type { Json } from '../text/json.js';
import { wellFormed } from '../text/text.js';
import type { BlobRef, Message, PromptMessage, RefusedPart } from '../transcript/messages.js';
import type { FailReason, Outcome, OutcomeBody, StopReason } from '../transcript/outcome.js';
import { append, markRefused } from '../transcript/transcript.js';
import type { RunState } from './state.js';
import { graphOf, stepsOf } from './turn-definition.js';
import { type Interruption, type Turn, type TurnInterruption, getOutcome } from './turn.js';

/** Returns the state with a changed turn. */
export function withTurn(state: RunState, change: Partial<Turn>): RunState {
  return { ...state, turn: { ...state.turn, ...change } };
}

/** Ends the turn under way with this outcome. */
export function endTurn(state: RunState, outcome: Outcome): RunState {
  return withTurn(state, { phase: { type: 'over', outcome } });
}

/** Removes the side branch from the prompt. Its messages stay in `pruned`, for audit. */
export function dropRepairBranch(state: RunState): RunState {
  const { turn, transcript, compaction } = state;
  if (turn.phase.type !== 'repairing') return state;
  const { messages, head, tokens, promptTokens } = turn.phase.branch;
  const cut = transcript.messages.slice(messages);
  return {
    ...state,
    transcript: {
      ...transcript,
      messages: transcript.messages.slice(0, messages),
      pruned: [...(transcript.pruned ?? []), ...cut],
      head,
      tokens,
    },
    compaction: { ...compaction, promptTokens },
    turn: { ...turn, phase: { type: 'deciding' } },
  };
}

/**
 * Removes from the prompt what the provider has refused, so that the next turn does not fail with
 * it too. The newest messages are at fault: those that no reply of the model has followed. If only
 * attachments are and these messages have none, all attachments leave.
 */
export function leaveOut(state: RunState, part: RefusedPart): RunState {
  const { transcript, compaction } = state;
  const { messages } = transcript;
  const from = messages.findLastIndex(isAccepted) + 1;
  const newest = messages.slice(from);
  const isAttached = newest.some(hasAttachments);
  const areOthersAttached = !isAttached && messages.some(hasAttachments);
  const next =
    part === 'attachments' && (isAttached || areOthersAttached)
      ? markRefused(transcript, (message, index) =>
          hasAttachments(message) && (areOthersAttached || index >= from) ? part : undefined,
        )
      : markRefused(transcript, (message, index) =>
          index >= from && isFromOutside(message) ? 'message' : undefined,
        );
  // The provider may have counted fewer tokens than the estimate of what leaves.
  const promptTokens = Math.max(0, compaction.promptTokens + next.tokens - transcript.tokens);
  return { ...state, transcript: next, compaction: { ...compaction, promptTokens } };
}

/** Whether the provider has accepted the prompt before this message: its model has answered it. */
function isAccepted(message: Message): boolean {
  return (
    message.role === 'assistant' &&
    message.supplied === undefined &&
    message.refused === undefined &&
    message.origin === undefined
  );
}

function hasAttachments(message: Message): boolean {
  if (message.role === 'assistant' || message.refused !== undefined) return false;
  return (message.attachments ?? []).length > 0;
}

function isFromOutside(message: Message): boolean {
  return message.role !== 'user' || message.origin !== 'perdure';
}

/** Appends a message to the transcript, numbered by the current turn and step. */
export function appendMessage(state: RunState, at: number, prompt: PromptMessage): RunState {
  const { turn, transcript, compaction } = state;
  const place = { n: transcript.next, turn: turn.number, step: turn.spent.steps, at };
  const message: Message = { ...place, ...prompt, text: wellFormed(prompt.text) };
  const longer = append(transcript, message);
  const promptTokens = compaction.promptTokens + longer.tokens - transcript.tokens;
  return {
    ...state,
    transcript: longer,
    compaction: { ...compaction, promptTokens },
  };
}

interface Answer {
  readonly answer: string;
  readonly blob?: BlobRef | undefined;
  readonly output?: Json | undefined;
}

/** Returns the outcome of a turn that ends with an answer, or with a tool that has `ends`. */
export function completed(state: RunState, given: Answer & { reason: 'answer' | 'tool' }): Outcome {
  return { status: 'completed', reason: given.reason, ...body(state, given) };
}

/** Returns the outcome of a turn that ends at a limit. */
export function stopped(state: RunState, reason: StopReason, answer: string): Outcome {
  return { status: 'stopped', reason, ...body(state, { answer }) };
}

/** Returns the outcome of a canceled turn, with the last text for people as its answer. */
export function cancelled(state: RunState): Outcome {
  return { status: 'cancelled', reason: 'cancelled', ...body(state, lastText(state)) };
}

/** Returns the outcome of a turn that failed. */
export function failed(
  state: RunState,
  given: { reason: FailReason; message: string; answer?: string },
): Outcome {
  const text = given.answer === undefined || given.answer === '' ? null : { answer: given.answer };
  return {
    status: 'failed',
    reason: given.reason,
    ...body(state, text),
    error: given.message,
  };
}

/**
 * Returns the outcome of an open run that was closed: the last turn's answer, the whole run's
 * usage.
 */
export function closed(state: RunState): Outcome {
  return { status: 'completed', reason: 'closed', ...runBody(state) };
}

/** Returns the outcome of a run that was canceled between its turns. */
export function runCancelled(state: RunState): Outcome {
  return { status: 'cancelled', reason: 'cancelled', ...runBody(state) };
}

/** Returns the outcome of a run that reached a limit between its turns. */
export function runStopped(state: RunState, reason: StopReason): Outcome {
  return { status: 'stopped', reason, ...runBody(state) };
}

function runBody(state: RunState): OutcomeBody {
  const { total, segments } = state;
  const last = getOutcome(state);
  return {
    answer: last?.answer ?? null,
    ...(last?.blob && { blob: last.blob }),
    output: last?.output ?? null,
    ...total,
    segments,
    ...templateOf(state),
    ...(last?.lost && { lost: last.lost }),
  };
}

function templateOf({ config }: RunState): Pick<OutcomeBody, 'template'> {
  const { template } = config.definition;
  return template === undefined ? {} : { template: template.hash };
}

function body(state: RunState, given: Answer | null): OutcomeBody {
  const { spent, lost } = state.turn;
  return {
    answer: given?.answer ?? null,
    ...(given?.blob && { blob: given.blob }),
    output: given?.output ?? null,
    steps: stepsOf(state),
    toolCalls: spent.toolCalls,
    usage: spent.usage,
    segments: state.segments,
    ...templateOf(state),
    ...(lost && { lost }),
  };
}

function lastText(state: RunState): Answer | null {
  const isGraph = graphOf(state) !== undefined;
  const last = state.transcript.messages.findLast(
    (message) =>
      message.turn === state.turn.number &&
      message.role === 'assistant' &&
      message.supplied !== true &&
      message.text !== '' &&
      // A model's reply in a graph, such as a plan, is JSON for the graph and not for people.
      (!isGraph || message.origin === 'graph'),
  );
  return last === undefined ? null : { answer: last.text };
}

/** Ordered from the weakest to the strongest. */
const STRENGTH: readonly TurnInterruption[] = ['wallMs', 'cancelTurn'];

/**
 * Returns the interruption of the turn under way; null if there is none. A cancellation of the run
 * stays in effect.
 */
export function getInterruption({ ending, turn }: RunState): Interruption | null {
  return ending === 'cancelled' ? 'cancel' : (turn.interruption ?? null);
}

/** Returns the stronger of two interruptions: a weaker one never replaces it. */
export function stronger(
  one: TurnInterruption | undefined,
  other: TurnInterruption,
): TurnInterruption {
  return one !== undefined && STRENGTH.indexOf(one) >= STRENGTH.indexOf(other) ? one : other;
}
