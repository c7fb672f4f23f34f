import { findTool, hasWakingMessage, openWaits, readyCalls } from '../calls/batch.js';
import { hasMessagesFor } from '../input/inbox.js';
import { awaitsDecision, limitRequest, requestDue } from '../requests/raise-requests.js';
import { compactionDue } from '../rules/compaction.js';
import { closingText, memoryDue, retrievalDue } from '../rules/documents.js';
import { isLoaded, limitReached, reserve } from '../rules/limits.js';
import { closed, getInterruption, runCancelled, runStopped } from '../state/change.js';
import type { RunState } from '../state/state.js';
import { hasModel, nodeDue } from '../state/turn-definition.js';
import {
  type Batch,
  type Interruption,
  closingReason,
  getOpenBatch,
  getOutcome,
  inTurn,
  isRepairing,
  openCallById,
} from '../state/turn.js';
import {
  type Block,
  type Flight,
  WORK,
  type Work,
  anyInFlight,
  findWork,
  turnWork,
} from '../state/work.js';
import { estimateTokens } from '../text/text.js';
import type { ToolCall } from '../transcript/messages.js';
import type { Outcome, StopReason } from '../transcript/outcome.js';
import type { NewRequest } from '../transcript/request.js';
import { chunkedLength } from '../transcript/transcript.js';
import { type SegmentFacts, fitsInput, segmentFull } from './carry.js';

/** The next step of work that is under way. */
export type WorkStep =
  /** `block` is the reason for a probe and for a check. */
  | {
      readonly type: 'start';
      readonly as: Exclude<Flight, 'child' | 'follow' | 'decide'>;
      readonly block?: Block;
    }
  /** Wait until the state changes or until this Unix time in ms; null: no time. */
  | { readonly type: 'wait'; readonly until: number | null }
  /** Stop, because the run is interrupted. */
  | { readonly type: 'stop' };

/** Returns the next step of work that is under way. `now`: Unix time in ms. Pure. */
export function nextWorkStep(state: RunState, work: Work, now: number): WorkStep {
  if (work.phase === 'in-flight') return { type: 'wait', until: null };
  if (getInterruption(state) !== null) return { type: 'stop' };
  if (work.phase === 'asking') return { type: 'wait', until: null };
  const { block, startAt = 0 } = work;
  if (block === undefined) {
    if (startAt > now) return { type: 'wait', until: startAt };
    if (work.unknown !== undefined) return { type: 'start', as: 'verify' };
    return state.paused ? { type: 'wait', until: null } : { type: 'start', as: 'attempt' };
  }
  if (block.until > now) return { type: 'wait', until: block.until };
  if (block.blob !== undefined) return { type: 'start', as: 'check', block };
  if (state.paused) return { type: 'wait', until: null };
  return { type: 'start', as: probeOf(state, work), block };
}

function probeOf(state: RunState, { name, unknown, found }: Work): 'verify' | 'find' | 'probe' {
  if (unknown !== undefined) return 'verify';
  return isCall(state, name) && !found ? 'find' : 'probe';
}

function isCall(state: RunState, name: string): boolean {
  return openCallById(state, name) !== undefined;
}

/**
 * Whether `resume` or the end of the segment may cancel the work in flight, because it has not
 * begun to act.
 */
export function isCancelable(state: RunState, work: Work): boolean {
  if (work.phase !== 'in-flight') return false;
  if (work.as === 'find' || work.as === 'check') return true;
  return work.as === 'probe' && !isOnce(state, work.name);
}

/** Whether the work belongs to a call that may be executed only once. */
function isOnce(state: RunState, name: string): boolean {
  const call = openCallById(state, name);
  return call !== undefined && findTool(state, call.name)?.effect === 'once';
}

/**
 * Whether a new segment can continue this work: nothing in flight would be lost, and it holds no
 * paid reply, because a message could still join that reply's prompt.
 */
function canBeCarried(state: RunState, work: Work): boolean {
  if (work.name === WORK.archive || work.name === WORK.fork || work.paid !== undefined)
    return false;
  if (work.phase === 'asking') return true;
  if (work.unknown !== undefined || work.startAt !== undefined) return false;
  return work.phase === 'waiting' || isCancelable(state, work);
}

/** Whether a new segment can continue all work that is under way. */
function canCarryAll(state: RunState): boolean {
  return state.work.every((work) => canBeCarried(state, work));
}

/** The next action of the loop. */
export type Action =
  | AtOnceAction
  | TimedAction
  | { readonly type: 'finish'; readonly outcome: Outcome };

/** An instant action: it only changes the state. */
export type AtOnceAction =
  | { readonly type: 'join-messages' }
  | { readonly type: 'begin-closing'; readonly reason: StopReason }
  | { readonly type: 'end-at-limit'; readonly reason: StopReason }
  /** All work of the turn has stopped, so the interruption takes effect. */
  | { readonly type: 'interrupt'; readonly by: Interruption }
  /** Calls wait for decisions before they are executed. */
  | {
      readonly type: 'raise-requests';
      readonly requests: readonly { readonly call: string; readonly request: NewRequest }[];
    }
  /** The turn has reached a limit that a person may raise. */
  | { readonly type: 'ask-limit'; readonly request: NewRequest }
  /** The first wait of a batch has ended, by time or by a message. */
  | { readonly type: 'pass-time' }
  | { readonly type: 'record-turn'; readonly outcome: Outcome }
  | { readonly type: 'begin-turn' }
  /** The current node of the graph begins its work. */
  | { readonly type: 'begin-node' }
  /** The open run never received a message. */
  | { readonly type: 'close-unused' };

/** An action that takes time. Work, people, or the clock may end it. */
export type TimedAction =
  | {
      readonly type: 'call-model';
      readonly closing: boolean;
      /** Output tokens that the budget still allows; null if there is no budget. */
      readonly maxOutputTokens: number | null;
    }
  /** Retrieve documents for the turn. */
  | { readonly type: 'retrieve' }
  /** Pass the ended turn to the agent's `remember`. */
  | { readonly type: 'remember' }
  | { readonly type: 'run-calls'; readonly calls: readonly ToolCall[] }
  /** Only waits remain in a batch; the first one ends at `until`, Unix time in ms. */
  | { readonly type: 'await-time'; readonly until: number }
  /** Archive the messages before the place `cut` in the prompt. `must`: they must be summarized. */
  | { readonly type: 'archive'; readonly cut: number; readonly must: boolean }
  /** Summarize the messages before the place `cut` in the prompt. */
  | { readonly type: 'compact'; readonly cut: number; readonly maxOutputTokens: number | null }
  | { readonly type: 'refresh-agent' }
  | { readonly type: 'await-message' }
  | { readonly type: 'await-resume' }
  /** Nothing can be done before a decision is made. */
  | { readonly type: 'await-decision' }
  /** A decision about a limit must be checked on a worker. */
  | { readonly type: 'check-decision' }
  /** Work is in flight; the next action depends on how it ends. */
  | { readonly type: 'await-work' }
  /** The agent, or another run's messages, must be loaded first. */
  | { readonly type: 'load' }
  | { readonly type: 'continue-as-new' };

/** Milliseconds after which an open run without a message ends. The first one may be refused. */
export const FIRST_MESSAGE_MS = 60 * 60_000;

/** The facts of a segment that is never full. */
export const NEVER_FULL: SegmentFacts = {
  historyBytes: 0,
  historyEvents: 0,
  suggested: false,
  postponed: true,
};

/** The inputs of the next action, in addition to the state. */
interface Now {
  readonly segment: SegmentFacts;
  /** Unix time in ms. */
  readonly now: number;
}

/** Returns the run's next action. Pure: all decisions of the loop. `now`: Unix time in ms. */
export function nextAction(state: RunState, segment: SegmentFacts = NEVER_FULL, now = 0): Action {
  const isCancelled = state.ending === 'cancelled';
  if (!isCancelled && (!isLoaded(state) || state.forks))
    return beforeFirstTurn(state, { segment, now });
  return inTurn(state)
    ? withinTurn(state, { segment, now })
    : betweenTurns(state, { segment, now });
}

function beforeFirstTurn(state: RunState, { segment, now }: Now): Action {
  const isFull = state.work.length > 0 && segmentFull(state, segment, now);
  return { type: isFull && canCarryAll(state) ? 'continue-as-new' : 'load' };
}

function withinTurn(state: RunState, { segment, now }: Now): Action {
  const { turn } = state;
  const by = getInterruption(state);
  if (by !== null)
    return awaitsStop(state, by) ? { type: 'await-work' } : { type: 'interrupt', by };
  // No other work begins while messages are being archived.
  if (findWork(state, WORK.archive)) return { type: 'await-work' };
  const isFull = segmentFull(state, segment, now);
  const batch = getOpenBatch(state);
  if (batch !== null) return withinBatch(state, { batch, isFull, now });
  // A side branch is short, and stays in one segment.
  if (!isRepairing(state) && isFull && canCarryAll(state)) return { type: 'continue-as-new' };
  if (turnWork(state).length > 0) return underWay(state);
  if (state.paused) return { type: 'await-resume' };
  if (hasMessagesFor(state.inbox, turn.number)) return { type: 'join-messages' };
  if (nodeDue(state)) return { type: 'begin-node' };
  const { maxOutputTokens, refusedBy } = reserve(state);
  const closing = closingReason(state);
  if (closing !== null) {
    if (refusedBy !== null) return { type: 'end-at-limit', reason: closing };
    return { type: 'call-model', closing: true, maxOutputTokens };
  }
  const reason = limitReached(state);
  if (reason === null) {
    if (retrievalDue(state)) return { type: 'retrieve' };
    const cut = isRepairing(state) ? null : compactionDue(state);
    if (cut === null) return { type: 'call-model', closing: false, maxOutputTokens };
    if (isArchived(state, cut)) return { type: 'compact', cut, maxOutputTokens };
    return { type: 'archive', cut, must: state.compaction.wanted };
  }
  // The run's steps were used up before this turn had any results for a closing call.
  if (turn.spent.steps === 0 && reason === 'steps') return { type: 'end-at-limit', reason };
  const request = limitRequest(state, reason, now);
  if (request !== null) return { type: 'ask-limit', request };
  const affordable = reserve(state, estimateTokens(closingText(state, reason))).refusedBy === null;
  const { onLimit } = state.config.definition;
  if (hasModel(state) && (onLimit === 'answer' || onLimit === 'ask') && affordable)
    return { type: 'begin-closing', reason };
  return { type: 'end-at-limit', reason };
}

/** Returns the action to which the work under way belongs. */
function underWay(state: RunState): Action {
  const limit = findWork(state, WORK.limit);
  if (limit !== undefined) {
    return {
      type: awaitsDecision(state, { id: limit.name }) ? 'await-decision' : 'check-decision',
    };
  }
  const model = findWork(state, WORK.model);
  if (findWork(state, WORK.retrieve)) return { type: 'retrieve' };
  if (model === undefined) return { type: 'await-work' };
  const { maxOutputTokens } = reserve(state);
  if (model.cut !== undefined) return { type: 'compact', cut: model.cut, maxOutputTokens };
  return { type: 'call-model', closing: closingReason(state) !== null, maxOutputTokens };
}

/**
 * Whether the archive has all messages that a compaction removes from memory, if the run has an
 * archive. Messages are not in numerical order: a summary takes the place of its messages.
 */
function isArchived({ archives, archived, transcript }: RunState, cut: number): boolean {
  if (!archives) return true;
  const { messages, pruned = [] } = transcript;
  const going = messages.slice(0, cut - chunkedLength(transcript));
  return [...going, ...pruned].every(({ n }) => n < archived);
}

/** Whether work in flight is to stop before an interruption takes effect. That of one turn leaves undos alone. */
function awaitsStop(state: RunState, by: Interruption): boolean {
  const isOfTurn = by !== 'cancel' && state.config.revised === true;
  return anyInFlight(isOfTurn ? { work: turnWork(state) } : state);
}

function withinBatch(
  state: RunState,
  { batch, isFull, now }: { batch: Batch; isFull: boolean; now: number },
): Action {
  const open = readyCalls(state, batch);
  const sequential = state.config.definition.toolCalls === 'sequential';
  // A call that a person must check runs alone: no other call is executed in the meantime.
  const unchecked = open.find(({ safety }) => safety !== undefined);
  const next = sequential ? open.slice(0, 1) : open;
  const due = unchecked === undefined ? next : [unchecked];
  const waits = openWaits(state, batch, due);
  const isIdle = turnWork(state).length === 0;
  const canLeave = isFull && fitsInput(batch) && canCarryAll(state);
  if (waits.length < due.length) {
    if (canLeave && (state.paused || !isIdle)) return { type: 'continue-as-new' };
    if (state.paused && isIdle) return { type: 'await-resume' };
    const waiting = new Set(waits.map(({ call }) => call.id));
    const executed = due.filter(({ id }) => !waiting.has(id));
    const requests = executed.flatMap((call) => {
      const request = requestDue(state, call, now);
      return request === null ? [] : [{ call: call.id, request }];
    });
    if (requests.length > 0) return { type: 'raise-requests', requests };
    // While the run is paused, no further calls begin.
    const mayRun = ({ id }: ToolCall): boolean =>
      !state.paused || findWork(state, id) !== undefined;
    const calls = executed.filter((call) => !awaitsDecision(state, call) && mayRun(call));
    if (calls.length > 0) return { type: 'run-calls', calls };
  }
  if (canLeave) return { type: 'continue-as-new' };
  if (waits.length === 0) return { type: 'await-decision' };
  const until = Math.min(...waits.map((wait) => wait.until));
  if (until <= now || hasWakingMessage(state)) return { type: 'pass-time' };
  return { type: 'await-time', until };
}

function betweenTurns(state: RunState, { segment, now }: Now): Action {
  const { turn, open, ending, inbox } = state;
  const outcome = getOutcome(state);
  const [first] = inbox.waiting;
  // A decision may end the turn while its messages are being archived.
  if (findWork(state, WORK.archive)) return { type: 'await-work' };
  if (turn.phase.type === 'over') return { type: 'record-turn', outcome: turn.phase.outcome };
  if (anyInFlight(state)) return { type: 'await-work' };
  if (outcome !== null && memoryDue(state)) return { type: 'remember' };
  if (outcome !== null && !open) return { type: 'finish', outcome };
  if (ending === 'cancelled') {
    // A task run adds its message to the transcript before it ends.
    if (!open && first !== undefined) return { type: 'begin-turn' };
    return { type: 'finish', outcome: runCancelled(state) };
  }
  if (open && ending === 'wallMs') return { type: 'finish', outcome: runStopped(state, 'wallMs') };
  // The run only has to end, so it needs no new segment.
  const isClosed = ending === 'closed' && first === undefined && !state.paused;
  if (isClosed) return { type: 'finish', outcome: closed(state) };
  if (segmentFull(state, segment, now)) return { type: 'continue-as-new' };
  if (state.paused) return { type: 'await-resume' };
  if (first !== undefined) {
    const refresh = inbox.waiting.some((one) => one.turn === first.turn && one.refresh);
    return { type: refresh ? 'refresh-agent' : 'begin-turn' };
  }
  const isUnused = inbox.lastTurn === 0 && now - state.startedAt >= FIRST_MESSAGE_MS;
  return { type: isUnused ? 'close-unused' : 'await-message' };
}
