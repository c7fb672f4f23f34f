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

/** What has to be done next. */
export type Action =
  | {
      readonly type: 'call-model';
      readonly closing: boolean;
      /** Output tokens that a budget still pays for; null when none binds. */
      readonly maxOutputTokens: number | null;
    }
  /** Documents for the turn are to be found; the newest `asked` messages say what it is about. */
  | { readonly type: 'retrieve'; readonly asked: number }
  | { readonly type: 'run-calls'; readonly calls: readonly ToolCall[] }
  /** Nothing but waits is left of a batch; the first is over at `until`, Unix time in ms. */
  | { readonly type: 'await-time'; readonly until: number }
  /** The messages before `cut` in the prompt shall be summarized. */
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

/** Of the results of a batch that a new segment takes over, in characters of JSON. */
const MOST_CARRIED_RESULTS = 512 * 1024;

/** A segment that is never full: for readers of a history, who follow where it leads. */
export const NEVER_FULL: SegmentFacts = {
  historyBytes: 0,
  historyEvents: 0,
  suggested: false,
  postponed: true,
};

/** The one decision of the loop. Pure. */
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
  // Nothing was done in this turn that a closing call could tell of: the run's own steps are used up.
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
  // What a person has to look at stands alone: nothing else is done meanwhile.
  const doubtful = open.find(({ safety }) => safety !== undefined);
  const next = sequential ? open.slice(0, 1) : open;
  const wanted = doubtful === undefined ? next : [doubtful];
  const waits = openWaits(state, batch, wanted);
  // Nothing is in flight, so a new segment can take the batch over as it is.
  const leaves = segmentFull(state, segment) && isLight(batch);
  if (waits.length < wanted.length) {
    if (leaves && (state.paused || segment.allBlocked)) return { type: 'continue-as-new' };
    if (state.paused) return { type: 'await-resume' };
    const waiting = new Set(waits.map(({ call }) => call.id));
    return { type: 'run-calls', calls: wanted.filter(({ id }) => !waiting.has(id)) };
  }
  if (leaves) return { type: 'continue-as-new' };
  return { type: 'await-time', until: Math.min(...waits.map(({ until }) => until)) };
}

/** Results are carried by value until their batch is complete. */
function isLight({ results }: Batch): boolean {
  return JSON.stringify(results).length <= MOST_CARRIED_RESULTS;
}

function betweenTurns(state: RunState, segment: SegmentFacts): Action {
  const { turn, open, ending, inbox } = state;
  const { outcome } = turn;
  const [first] = inbox.waiting;
  if (outcome !== null && !turn.recorded) return { type: 'record-turn', outcome };
  if (outcome !== null && !open) return { type: 'finish', outcome };
  if (ending === 'cancelled') {
    // A task's message is heard before it ends, so that its transcript says what was asked.
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
