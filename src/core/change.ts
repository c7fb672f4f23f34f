import type { Message, PromptMessage } from './transcript/messages.js';
import type { Outcome } from './outcome.js';
import type { RunState } from './state.js';
import type { Turn } from './turn.js';
import { append } from './transcript/transcript.js';

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

/** Appends a message to the transcript, numbered by the current turn and step. */
export function appendMessage(state: RunState, at: number, prompt: PromptMessage): RunState {
  const { turn, transcript, compaction } = state;
  const place = { n: transcript.next, turn: turn.number, step: turn.spent.steps, at };
  const message: Message = { ...place, ...prompt };
  const longer = append(transcript, message);
  const promptTokens = compaction.promptTokens + longer.tokens - transcript.tokens;
  return {
    ...state,
    transcript: longer,
    compaction: { ...compaction, promptTokens },
  };
}
