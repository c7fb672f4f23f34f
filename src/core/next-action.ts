import { openCalls, openWaits } from './calls/batch.js';
import { segmentFull, type SegmentFacts } from './segments/carry.js';
import { compactionDue } from './compaction.js';
import { CLOSING_INSTRUCTION } from './compose.js';
import { askedMessages, retrievalDue } from './documents.js';
import { closed, runCancelled, runStopped } from './make-outcome.js';
import { estimateTokens } from './text/estimate.js';
import { hasMessagesFor } from './inbox.js';
import { limitReached, reserve } from './limits.js';
import type { ToolCall } from './transcript/messages.js';
import type { Outcome, StopReason } from './outcome.js';
import { inTurn, type Batch, type RunState } from './state.js';

/** What the loop has to do next. */
export type Action =
  | {
      readonly type: 'call-model';
      readonly closing: boolean;
      /** Output tokens that the budget still allows; null if there is no budget. */
      readonly maxOutputTokens: number | null;
    }
  /** Retrieve documents for the turn; the newest `asked` messages are what it is about. */
  | { readonly type: 'retrieve'; readonly asked: number }
  | { readonly type: 'run-calls'; readonly calls: readonly ToolCall[] }
  /** Only waits are left of a batch; the first one ends at `until`, Unix time in ms. */
  | { readonly type: 'await-time'; readonly until: number }
  /** Summarize the messages before the place `cut` in the prompt. */
  | { readonly type: 'compact'; readonly cut: number; readonly maxOutputTokens: number | null }
  | { readonly type: 'join-messages' }
  | { readonly type: 'begin-closing'; readonly reason: StopReason }
  | { readonly type: 'end-at-limit'; readonly reason: StopReason }
  | { readonly type: 'end-cancelled' }
  | { readonly type: 'record-turn'; readonly outcome: Outcome }
  | { readonly type: 'refresh-agent' }
  | { readonly type: 'begin-turn' }
  | { readonly type: 'await-message' }
  | { readonly type: 'await-resume' }
  | { readonly type: 'continue-as-new' }
  | { readonly type: 'finish'; readonly outcome: Outcome };

/** Characters of JSON that the results of an open batch may have to be passed to a new segment. */
const MAX_CARRIED_RESULTS = 512 * 1024;

/** The facts of a segment that is never full, for a projection, which follows the recorded history. */
export const NEVER_FULL: SegmentFacts = {
  historyBytes: 0,
  historyEvents: 0,
  suggested: false,
  postponed: true,
};

/** Returns the next action of a run. All decisions of the loop are made here. Pure. */
export function nextAction(state: RunState, segment: SegmentFacts = NEVER_FULL): Action {
  return inTurn(state) ? withinTurn(state, segment) : betweenTurns(state, segment);
}

function withinTurn(state: RunState, segment: SegmentFacts): Action {
  const { turn } = state;
  if (turn.batch !== null) return withinBatch(state, { batch: turn.batch, segment });
  if (state.ending === 'cancelled') return { type: 'end-cancelled' };
  // A side branch is short, and stays in one segment.
  if (!turn.branch && segmentFull(state, segment)) return { type: 'continue-as-new' };
  if (state.paused) return { type: 'await-resume' };
  if (hasMessagesFor(state.inbox, turn.number)) return { type: 'join-messages' };
  const { maxOutputTokens, refusedBy } = reserve(state);
  if (turn.closing !== null) {
    if (refusedBy !== null) return { type: 'end-at-limit', reason: turn.closing };
    return { type: 'call-model', closing: true, maxOutputTokens };
  }
  const reason = limitReached(state);
  if (reason === null) {
    if (retrievalDue(state)) return { type: 'retrieve', asked: askedMessages(state) };
    const cut = turn.branch ? null : compactionDue(state);
    if (cut !== null) return { type: 'compact', cut, maxOutputTokens };
    return { type: 'call-model', closing: false, maxOutputTokens };
  }
  // The run's steps were used up before this turn did anything that a closing call could report.
  if (turn.spent.steps === 0 && reason === 'steps') return { type: 'end-at-limit', reason };
  const affordable = reserve(state, estimateTokens(CLOSING_INSTRUCTION)).refusedBy === null;
  if (state.config.definition.onLimit === 'answer' && affordable)
    return { type: 'begin-closing', reason };
  return { type: 'end-at-limit', reason };
}

function withinBatch(
  state: RunState,
  { batch, segment }: { batch: Batch; segment: SegmentFacts },
): Action {
  const open = openCalls(state, batch);
  const sequential = state.config.definition.toolCalls === 'sequential';
  // A call that a person has to check runs alone: no other call is executed meanwhile.
  const unchecked = open.find(({ safety }) => safety !== undefined);
  const next = sequential ? open.slice(0, 1) : open;
  const due = unchecked === undefined ? next : [unchecked];
  const waits = openWaits(state, batch, due);
  // Nothing is in flight, so a new segment can continue the batch as it is.
  const canLeave = segmentFull(state, segment) && isSmall(batch);
  if (waits.length < due.length) {
    if (canLeave && (state.paused || segment.allBlocked)) return { type: 'continue-as-new' };
    if (state.paused) return { type: 'await-resume' };
    const waiting = new Set(waits.map(({ call }) => call.id));
    return { type: 'run-calls', calls: due.filter(({ id }) => !waiting.has(id)) };
  }
  if (canLeave) return { type: 'continue-as-new' };
  return { type: 'await-time', until: Math.min(...waits.map(({ until }) => until)) };
}

/** Results are passed by value until their batch is complete, so they have to be small. */
function isSmall({ results }: Batch): boolean {
  return JSON.stringify(results).length <= MAX_CARRIED_RESULTS;
}

function betweenTurns(state: RunState, segment: SegmentFacts): Action {
  const { turn, open, ending, inbox } = state;
  const { outcome } = turn;
  const [first] = inbox.waiting;
  if (outcome !== null && !turn.recorded) return { type: 'record-turn', outcome };
  if (outcome !== null && !open) return { type: 'finish', outcome };
  if (ending === 'cancelled') {
    // A task run takes its message before it ends, so that the transcript has it.
    if (!open && first !== undefined) return { type: 'begin-turn' };
    return { type: 'finish', outcome: runCancelled(state) };
  }
  if (open && ending === 'wallMs') return { type: 'finish', outcome: runStopped(state, 'wallMs') };
  if (segmentFull(state, segment)) return { type: 'continue-as-new' };
  if (state.paused) return { type: 'await-resume' };
  if (first !== undefined) {
    const refresh = inbox.waiting.some((one) => one.turn === first.turn && one.refresh);
    return { type: refresh ? 'refresh-agent' : 'begin-turn' };
  }
  if (ending === 'closed') return { type: 'finish', outcome: closed(state) };
  return { type: 'await-message' };
}
