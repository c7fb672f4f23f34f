import { actorOf, joinContexts } from '../input/turn-context.js';
import { attachArtifacts, nameArtifacts } from '../calls/artifacts.js';
import {
  fillBatch,
  findTool,
  finishedWaits,
  hasWakingMessage,
  notExecuted,
  openCalls,
} from '../calls/batch.js';
import { hooksOf } from '../graph/hooks.js';
import { type Incoming, isAnonymous, namesIn, takeMessages } from '../input/inbox.js';
import { misfitProblem, promptText } from '../input/named-prompt.js';
import { joinSettings } from '../input/turn-settings.js';
import { canCompact, compact } from '../rules/compaction.js';
import { addDocuments, closingText, composeAnswer } from '../rules/documents.js';
import { leftForCall, reachedText } from '../rules/limit-text.js';
import { addReports, addSpent, addTokensUsed, countCalls } from '../rules/spending.js';
import {
  appendMessage,
  cancelled,
  dropRepairBranch,
  endTurn,
  failed,
  getInterruption,
  leaveOut,
  stopped,
  stronger,
  withTurn,
} from '../state/change.js';
import {
  type FinishedTurn,
  type GraphState,
  RECENT_CHARACTERS,
  RECENT_TURNS,
  type RunState,
} from '../state/state.js';
import { nodeOfCall } from '../state/turn-definition.js';
import {
  type Batch,
  type Interruption,
  closingReason,
  freshTurn,
  getOpenBatch,
  getOutcome,
  inTurn,
  isRepairing,
} from '../state/turn.js';
import { WORK, findWork, hasBegun, isUndo, withoutWork } from '../state/work.js';
import { type CallResult, cancelledCall, refusal } from '../transcript/call-result.js';
import type { RefusedPart, SuppliedMessage, ToolCall } from '../transcript/messages.js';
import type { FailReason, StopReason } from '../transcript/outcome.js';
import { fitsPinned } from './ask.js';
import { closeBatch, completeBatch } from './complete-batch.js';
import { applyControlEvent, editCall, recordVerdict, undoEnabled, undoParsed } from './control.js';
import type { RunEvent } from './events.js';
import { onClosingReply, onReply } from './on-reply.js';

/** Begins the turn of the oldest waiting message. `at`: Unix time in ms. */
function beginTurn(state: RunState, at: number): RunState {
  const number = state.inbox.waiting[0]?.turn ?? state.turn.number + 1;
  const { taken } = takeMessages(state.inbox, number);
  const fresh = { ...state, turn: freshTurn(number, state.config.price, at) };
  const begun = joinMessages(fresh, at, false);
  const problem = textMisfit(state, taken);
  if (problem !== null) return endTurn(begun, failed(begun, { reason: 'input', message: problem }));
  return hooksOf(begun)?.begun(begun, { taken, at }) ?? begun;
}

/**
 * Returns why a text does not fit, or null. A message may arrive before the agent is loaded, or
 * name a prompt that a newer definition lacks.
 */
function textMisfit({ config }: RunState, taken: readonly Incoming[]): string | null {
  const problems = taken.map((message) => misfitProblem(config.definition, message));
  return problems.find((problem) => problem !== null) ?? null;
}

/**
 * Moves the messages for the turn under way into the transcript, in the order of their arrival.
 * `isBegun`: the turn has had messages before.
 */
function joinMessages(state: RunState, at: number, isBegun = true): RunState {
  const { taken, inbox } = takeMessages(state.inbox, state.turn.number);
  if (taken.length === 0) return state;
  const { notes = [], ...unnoted } = withRequesters(dropRepairBranch(state), taken, isBegun);
  const noted = notes.reduce<RunState>(
    (next, text) => appendMessage(next, at, { role: 'user', text, origin: 'perdure' }),
    unnoted,
  );
  return taken.reduce<RunState>(
    (current, message) => {
      const { id, pinned, attachments, artifacts, input, messages = [] } = message;
      const next = artifacts === undefined ? current : attachArtifacts(current, artifacts, at);
      const before = messages
        .slice(0, -1)
        .reduce<RunState>((so, one) => appendSupplied(so, at, one), next);
      const text = messages.at(-1)?.text ?? textOf(state, message);
      // A graph's input without text adds no message for the model.
      if (text === '' && input !== undefined) return next;
      return appendMessage(before, at, {
        role: 'user',
        text,
        ...(attachments && { attachments }),
        id,
        ...(pinned && fitsPinned(before, message) && { pinned }),
        ...actorOf(message),
      });
    },
    withNewest({ ...noted, inbox }, taken),
  );
}

/**
 * Appends one of several messages sent as one. Only the last one has the id and the attachments.
 */
function appendSupplied(state: RunState, at: number, { role, text }: SuppliedMessage): RunState {
  return appendMessage(
    state,
    at,
    role === 'user' ? { role, text } : { role, text, supplied: true },
  );
}

/**
 * Returns the text of a message. If its prompt cannot be filled in, a placeholder line takes its
 * place: the turn fails, and the conversation continues.
 */
function textOf({ config }: RunState, { text, prompt, args }: Incoming): string {
  if (prompt === undefined) return text;
  const call = { prompt, ...(args && { args }) };
  if (misfitProblem(config.definition, call) !== null) return '[a message that could not be read]';
  return promptText(config.definition, call);
}

/** Sets the turn's prompt to the newest one, and joins contexts and settings of all messages. */
function withNewest(state: RunState, taken: readonly Incoming[]): RunState {
  const prompt = taken.findLast((message) => message.prompt !== undefined)?.prompt;
  const context = joinContexts([state.turn.context, ...taken.map((message) => message.context)]);
  const settings = joinSettings([state.turn.settings, ...taken.map((one) => one.settings)]);
  return withTurn(state, {
    ...(prompt !== undefined && { prompt }),
    ...(context !== undefined && { context }),
    ...(settings !== undefined && { settings }),
  });
}

/** Records the requesters of this turn, because rules may require other people to decide. */
function withRequesters(state: RunState, taken: readonly Incoming[], isBegun: boolean): RunState {
  const { by: before } = state.turn;
  const by = [...new Set([...(before ?? []), ...namesIn(taken)])];
  // Without any name, the requesters are unknown anyway.
  if (by.length === 0) return state;
  const anonymous = (isBegun && before === undefined) || taken.some(isAnonymous);
  const first = taken.find((message) => namesIn([message]).length > 0);
  const door = before === undefined ? first?.door : state.turn.door;
  return withTurn(state, {
    by,
    ...(anonymous && { anonymous: true }),
    ...(door !== undefined && { door }),
  });
}

/** Returns the next state of a run. Pure: equal inputs produce equal states on every machine. */
export function reduce(state: RunState, event: RunEvent): RunState {
  const next = reduceEvent(state, event);
  const { phase } = next.turn;
  const isOver = phase.type === 'over' && phase !== state.turn.phase;
  if (!isOver || !('at' in event)) return next;
  return hooksOf(next)?.ended(next, event.at) ?? next;
}

function reduceEvent(state: RunState, event: RunEvent): RunState {
  switch (event.type) {
    case 'turn-begun':
      return beginTurn(state, event.at);
    case 'node-begun':
      return completeBatch(hooksOf(state)?.entered(state, event.at) ?? state, event.at);
    case 'conversation-recorded':
      return hooksOf(state)?.conversed(state, event.run) ?? state;
    case 'messages-joined':
      return joinMessages(state, event.at);
    case 'documents-retrieved':
      return addDocuments(state, event);
    case 'retrieval-failed':
      return endTurn(state, failed(state, { reason: 'error', message: event.message }));
    case 'turn-remembered':
      return withTurn(addReports(state, event.reports), { remembered: true });
    case 'values-lost':
      return addReports(state, event.reports);
    case 'model-replied':
      return closingReason(state) === null ? onReply(state, event) : onClosingReply(state, event);
    case 'model-failed':
      return modelFailed(state, event);
    case 'messages-refused':
      return leaveOut(state, event.refused);
    case 'tokens-used':
      return addTokensUsed(state, event.used);
    case 'usage-spent':
      return addSpent(state, event);
    case 'limit-hit':
      return withTurn(state, { limit: event.limit });
    case 'call-finished':
      return callFinished(state, event);
    case 'time-passed':
      return timePassed(state, event.at);
    case 'interruption-requested':
      return withTurn(state, { interruption: stronger(state.turn.interruption, event.by) });
    case 'turn-interrupted':
      return inTurn(state) ? interruptTurn(state, event) : state;
    case 'closing-begun':
      return appendMessage(
        withTurn(dropRepairBranch(state), { phase: { type: 'closing', reason: event.reason } }),
        event.at,
        {
          role: 'user',
          text: closingText(state, event.reason),
          origin: 'perdure',
        },
      );
    case 'turn-ended-at-limit':
      return endAtLimit(dropRepairBranch(state), event.reason);
    case 'transcript-compacted':
      return compact(state, event);
    case 'turn-recorded':
      return recordTurn(state, event.at);
    case 'call-edited':
      return editCall(state, event);
    case 'verdict-recorded':
      return recordVerdict(state, event);
    case 'limit-kept':
      return withTurn(state, { limitKept: true });
    case 'limit-raised':
      return withTurn(state, { limit: null });
    case 'undo-enabled':
      return undoEnabled(state, event);
    case 'undo-parsed':
      return undoParsed(state, event);
    default:
      return applyControlEvent(state, event);
  }
}

/** Records the ended turn. The next turn reads messages that joined after the last model call. */
function recordTurn(state: RunState, at: number): RunState {
  const { interruption: _, ...ended } = state.turn;
  const { number: turn } = ended;
  const outcome = getOutcome(state);
  // An interruption or blocked work of this turn does not carry over to the next one.
  const over = {
    ...state,
    turn: { ...ended, phase: { type: 'idle', outcome } as const },
    ...(state.graph && { graph: betweenPasses(state.graph) }),
    work: state.work.filter(isUndo),
  };
  const joined = joinMessages(over, at);
  if (outcome === null) return joined;
  return { ...joined, recent: newestTurns([...state.recent, { turn, outcome }]) };
}

/** Returns a graph's state between turns, without the data of a visit. */
function betweenPasses(graph: GraphState): GraphState {
  const { interrupted: _, ...rest } = graph;
  return { ...rest, at: null };
}

/** Returns the newest turns within the limits on their number and size. */
function newestTurns(turns: readonly FinishedTurn[]): readonly FinishedTurn[] {
  let characters = 0;
  const from = turns.findLastIndex(({ outcome }) => {
    characters += JSON.stringify(outcome).length;
    return characters > RECENT_CHARACTERS;
  });
  return turns.slice(Math.max(from + 1, turns.length - RECENT_TURNS));
}

function modelFailed(
  state: RunState,
  event: { reason: FailReason; message: string; refused?: RefusedPart; at: number },
): RunState {
  // A message that alone is too long would fail the next turn too.
  const { refused = event.reason === 'context_too_long' ? 'message' : undefined } = event;
  const closing = closingReason(state);
  if (closing !== null) {
    const answer = composeAnswer(state, closing);
    const closed = refused === undefined ? state : leaveOut(state, refused);
    return endTurn(closed, stopped(closed, closing, answer));
  }
  // The repair exceeds the model's window, so it starts over with the remaining attempts.
  if (event.reason === 'context_too_long' && isRepairing(state)) return dropRepairBranch(state);
  if (event.reason === 'context_too_long' && canCompact(state)) {
    return { ...state, compaction: { ...state.compaction, wanted: true } };
  }
  const dropped = dropRepairBranch(state);
  const next = refused === undefined ? dropped : leaveOut(dropped, refused);
  const hooks = hooksOf(next);
  const message = hooks?.named(next, event.message) ?? event.message;
  return hooks?.failed(next, event) ?? endTurn(next, failed(next, { ...event, message }));
}

function timePassed(state: RunState, at: number): RunState {
  const results = finishedWaits(state, at);
  const woken = hasWakingMessage(state)
    ? withTurn(state, { wokenBy: state.inbox.count ?? 0 })
    : state;
  return completeBatch(results.reduce(takeResult, woken), at);
}

/** Applies a call's result. An interruption closes the batch once all its calls have stopped. */
function callFinished(
  state: RunState,
  { result, at }: { result: CallResult; at: number },
): RunState {
  const isLast = (getOpenBatch(state)?.results ?? []).filter((one) => one === null).length === 1;
  const taken = takeResult(state, isLast ? result : { ...result, at });
  return getInterruption(state) === null ? completeBatch(taken, at) : taken;
}

/** Records and counts one result. A call keeps its first result. */
function takeResult(state: RunState, result: CallResult): RunState {
  const batch = getOpenBatch(state);
  if (batch === null || !isOpen(batch, result.id)) return state;
  const counted = addSpent(
    countCalls(withoutWork(state, result.id), countsAsCall(batch, result) ? 1 : 0),
    result,
  );
  const filled = withTurn(counted, { phase: { type: 'acting', batch: fillBatch(batch, result) } });
  return nameArtifacts(hooksOf(filled)?.progressed(filled) ?? filled);
}

/** Whether a result counts as a tool call. A graph node's own work does not. */
function countsAsCall({ calls }: Batch, { id, executed }: CallResult): boolean {
  const call = calls.find((one) => one.id === id);
  return executed && (call === undefined || nodeOfCall(call) === null);
}

function isOpen({ calls, results }: Batch, id: string): boolean {
  return results[calls.findIndex((call) => call.id === id)] === null;
}

/** Gives every open call a result that states the cause of the interruption. */
function interruptTurn(state: RunState, event: { by: Interruption; at: number }): RunState {
  const isCancel = event.by !== 'wallMs';
  const begun = openCallsOf(state).reduce((before, call) => {
    const result = brokenOffCall(before, call);
    return result === null ? before : takeResult(before, result);
  }, state);
  const why = isCancel ? 'canceled by a person' : 'interrupted by the time limit';
  const { interruption: _, ...turn } = begun.turn;
  const idle = { ...begun, turn, work: begun.work.filter(isUndo) };
  const isRefused = findWork(state, WORK.model)?.block?.reason === 'bad_request';
  const repaired = dropRepairBranch(idle);
  const closed = closeBatch(
    isRefused ? leaveOut(repaired, 'message') : repaired,
    event.at,
    (call) => refusal(call.id, { type: 'cancelled', message: why }),
  );
  if (isCancel) return endTurn(closed, cancelled(closed));
  const closing = closingReason(closed);
  if (closing === null) return withTurn(closed, { limit: 'wallMs' });
  return endTurn(closed, stopped(closed, closing, composeAnswer(closed, closing)));
}

function openCallsOf(state: RunState): readonly ToolCall[] {
  const batch = getOpenBatch(state);
  return batch === null ? [] : openCalls(state, batch);
}

/** Returns the result of a begun call that was interrupted while waiting; null for any other. */
function brokenOffCall(state: RunState, call: ToolCall): CallResult | null {
  const work = findWork(state, call.id);
  const tool = findTool(state, call.name);
  if (work === undefined || tool === undefined || (work.approved && !hasBegun(work))) return null;
  // Nothing has begun, except for a call with an unknown outcome.
  if (work.request !== undefined && work.request.kind !== 'outcome_unknown') return null;
  // The call's MCP server has asked for input instead, and has not been called again.
  const isAsked = work.asked !== undefined && !hasBegun(work);
  if (work.startAt === undefined && !isAsked) return cancelledCall(call, tool);
  return notExecuted(call, 'the run was interrupted before it');
}

function endAtLimit(state: RunState, reason: StopReason): RunState {
  if (state.config.definition.onLimit !== 'fail') {
    return endTurn(state, stopped(state, reason, composeAnswer(state, reason)));
  }
  const isShort = state.config.revised && leftForCall(state, reason) !== null;
  const why = isShort ? reachedText(state, reason) : 'the limit was reached';
  const message = `${reason}: ${why}, and this agent has onLimit "fail"`;
  return endTurn(state, { ...failed(state, { reason: 'limit', message }), limit: reason });
}
