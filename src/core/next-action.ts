import { openCalls } from './batch.js';
import { CLOSING_INSTRUCTION } from './compose.js';
import { estimateTokens } from './estimate.js';
import { limitReached, reserve } from './limits.js';
import type { ToolCall } from './messages.js';
import type { Outcome, StopReason } from './outcome.js';
import type { RunState } from './state.js';

/** What has to be done next. */
export type Action =
  | {
      readonly type: 'call-model';
      readonly closing: boolean;
      /** Output tokens that a budget still pays for; null when none binds. */
      readonly maxOutputTokens: number | null;
    }
  | { readonly type: 'run-calls'; readonly calls: readonly ToolCall[] }
  | { readonly type: 'begin-closing'; readonly reason: StopReason }
  | { readonly type: 'end-at-limit'; readonly reason: StopReason }
  | { readonly type: 'finish'; readonly outcome: Outcome };

/** The one decision of the loop. Pure. */
export function nextAction(state: RunState): Action {
  const { turn, config } = state;
  if (turn.outcome !== null) return { type: 'finish', outcome: turn.outcome };
  if (turn.batch !== null) {
    const open = openCalls(state, turn.batch);
    const sequential = config.definition.toolCalls === 'sequential';
    return { type: 'run-calls', calls: sequential ? open.slice(0, 1) : open };
  }
  const { maxOutputTokens, refusedBy } = reserve(state);
  if (turn.closing !== null) {
    if (refusedBy !== null) return { type: 'end-at-limit', reason: turn.closing };
    return { type: 'call-model', closing: true, maxOutputTokens };
  }
  const reason = limitReached(state);
  if (reason === null) return { type: 'call-model', closing: false, maxOutputTokens };
  const affordable = reserve(state, estimateTokens(CLOSING_INSTRUCTION)).refusedBy === null;
  if (config.definition.onLimit === 'answer' && affordable)
    return { type: 'begin-closing', reason };
  return { type: 'end-at-limit', reason };
}
