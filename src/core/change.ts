import { wellFormed } from './text/whole-text.js';
import type { Message, PromptMessage, RefusedPart } from './transcript/messages.js';
import type { Outcome } from './outcome.js';
import type { RunState } from './state.js';
import type { Turn } from './turn.js';
import { append, markRefused } from './transcript/transcript.js';

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
  const promptTokens = compaction.promptTokens + next.tokens - transcript.tokens;
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
