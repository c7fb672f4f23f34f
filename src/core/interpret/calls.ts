import { findTool, notExecuted } from '../calls/batch.js';
import { denial } from '../calls/open-batch.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import type { RunToolResult } from '../guards/recorded.js';
import { askingWork } from '../requests/open-requests.js';
import { nextDeadline } from '../rules/limits.js';
import type { Completed, EndOf, RunEvent } from '../run/events.js';
import { getInterruption } from '../state/change.js';
import type { RecordedDecision, RunState } from '../state/state.js';
import { nodeOfCall } from '../state/turn-definition.js';
import { inTurn, openCallById } from '../state/turn.js';
import { keptOf } from '../state/undo.js';
import {
  type AskingWork,
  UNDO,
  type CallWork,
  begunCall,
  callOfWork,
  findWork,
  isUndo,
} from '../state/work.js';
import { isObject, textField } from '../text/json.js';
import { formatDuration } from '../text/text.js';
import {
  type CallResult,
  type ToolSuccess,
  cancelledCall,
  deniedCall,
  failedCall,
  lostCall,
  lostMessage,
  succeededCall,
  toolErrorCall,
} from '../transcript/call-result.js';
import { type ToolCall, parseCallId } from '../transcript/messages.js';
import { NODE_BLOCKS, TOOL_BLOCKS, type Usage } from '../transcript/outcome.js';
import { blockWork, blockingProblem, parsePayment, probeCanceled, unblocked } from './block.js';
import { MAX_ROUNDS, isServerAsk, serverAnswered, serverAsked } from './server-asks.js';

/**
 * A `once` tool has a single activity attempt. An execution that fails before the tool starts is
 * scheduled again, up to this total.
 */
const MAX_STARTS = 8;
const FIRST_PAUSE_MS = 1_000;

/** A call of the open batch, with its tool and the work on it. */
export interface OpenCall {
  readonly call: ToolCall;
  readonly tool: ToolDefinition;
  readonly work: CallWork;
  readonly key: string;
}

/** Returns the call to which a task belongs; null if it is not open. */
export function openCallOf(
  state: RunState,
  { task, work: name }: Pick<EndOf<'completed'>, 'task' | 'work'>,
): OpenCall | null {
  const call = openCallById(state, name);
  const tool = call && findTool(state, call.name);
  const work = call && findWork(state, call.id);
  if (!call || !tool || !work) return null;
  const key = isObject(task.input) ? textField(task.input, 'key') : '';
  return { call, tool, work, key };
}

/** Returns the events of remaining work on a call that already has its result: the work ends. */
function overAlready(
  state: RunState,
  { work: name }: Pick<EndOf<'completed'>, 'work'>,
): readonly RunEvent[] {
  return findWork(state, name) === undefined ? [] : [{ type: 'work-ended', name }];
}

/** Returns the events of a call's result. */
export function finishCall(result: CallResult, at: number): readonly RunEvent[] {
  return [
    { type: 'work-ended', name: result.id },
    { type: 'call-finished', result, at },
  ];
}

/** Returns the events of a tool's completed activity, with any result. */
export function callReturned(state: RunState, fact: Completed<RunToolResult>): readonly RunEvent[] {
  const open = openCallOf(state, fact);
  const spent = 'spent' in fact.result ? spentEvents(fact.result) : [];
  if (open === null) return [...spent, ...overAlready(state, fact)];
  const { work } = open;
  if (isSearch(work) && isFound(fact.result)) {
    // A call to which the rules were applied is no longer blocked; the others are attempted next.
    const next = isJudged(fact) ? unblocked(work) : work;
    return [{ type: 'work-changed', work: { ...next, found: true, phase: 'waiting' } }];
  }
  return [...spent, ...resultEvents(state, open, { result: fact.result, at: fact.at })];
}

/** Returns the event that counts the model calls of a node's function. */
function spentEvents({ spent }: { readonly spent?: Usage }): readonly RunEvent[] {
  return spent === undefined ? [] : [{ type: 'usage-spent', usage: spent }];
}

function failedResult(
  call: ToolCall,
  { text, limit }: Extract<RunToolResult, { ok: false }>,
): CallResult {
  return { ...toolErrorCall(call, text), ...(limit && { limit }) };
}

/** Whether the activity in flight cannot have executed the call. */
function isSearch(work: CallWork): boolean {
  return work.phase === 'in-flight' && work.as === 'find';
}

/** Whether a search shows that the call may be executed, and not that the rules prevent it. */
function isFound({ ok }: RunToolResult): boolean {
  return ok !== 'undecided' && ok !== false;
}

function isJudged({ task: { input } }: Pick<EndOf<'completed'>, 'task'>): boolean {
  return isObject(input) && input['judge'] === true;
}

/** Returns the events of a tool's result. */
export function resultEvents(
  state: RunState,
  open: OpenCall,
  { result, at }: { readonly result: RunToolResult; readonly at: number },
): readonly RunEvent[] {
  const { call } = open;
  switch (result.ok) {
    case true:
      return succeeded(open, result, at);
    case false:
      return [
        ...lossEvents(result),
        ...finishCall(underGrant(open, failedResult(call, result)), at),
      ];
    case 'unknown':
      return unknownOutcome(open, result.message, at);
    case 'undecided':
      return undecided(state, open, { result, at });
    case 'input_required':
      return inputRequired(state, open, { result, at });
    case 'not_started':
      return notStarted(open, result.message, at);
  }
}

/**
 * Returns the events of a graph node's call after a worker applied the rules to it. It requests
 * approval like a model's call.
 */
function undecided(
  state: RunState,
  { call }: OpenCall,
  {
    result: { verdict, parsed, summary },
    at,
  }: { readonly result: Extract<RunToolResult, { ok: 'undecided' }>; readonly at: number },
): readonly RunEvent[] {
  const denied = denial(state, { ...call, verdict });
  if (denied !== null) return finishCall(deniedCall(call, denied), at);
  return [
    { type: 'work-ended', name: call.id },
    {
      type: 'verdict-recorded',
      id: call.id,
      verdict,
      ...(parsed && { parsed }),
      ...(summary !== undefined && { summary }),
    },
  ];
}

function inputRequired(
  state: RunState,
  open: OpenCall,
  {
    result,
    at,
  }: {
    readonly result: Extract<RunToolResult, { ok: 'input_required' }>;
    readonly at: number;
  },
): readonly RunEvent[] {
  const { call, tool, work } = open;
  const message = `MCP server "${tool.mcp?.server ?? ''}" asks for input again after ${MAX_ROUNDS} times; it has not executed the call`;
  return (
    serverAsked(state, work, result, at) ??
    finishCall(underGrant(open, failedCall(call, { type: 'tool_error', message })), at)
  );
}

function notStarted({ call, work }: OpenCall, message: string, at: number): readonly RunEvent[] {
  const starts = (work.starts ?? 0) + 1;
  if (starts >= MAX_STARTS) return finishCall(notExecuted(call, message), at);
  const startAt = at + FIRST_PAUSE_MS * 2 ** (starts - 1);
  const { block: _, found: __, ...rest } = work;
  return [{ type: 'work-changed', work: { ...rest, starts, startAt, phase: 'waiting' } }];
}

/**
 * Returns the events of a call whose outcome is unknown: its `verify` decides if it has one, else a
 * person.
 */
function unknownOutcome(open: OpenCall, message: string, at: number): readonly RunEvent[] {
  const { tool, work, key } = open;
  if (!tool.verify) return askForOutcome(open, message, at);
  return [{ type: 'work-changed', work: { ...begunCall(work, key), unknown: message } }];
}

/** Returns the events by which the run asks a person for the outcome of a call. */
export function askForOutcome(
  { key, work }: OpenCall,
  message: string,
  at: number,
): readonly RunEvent[] {
  const request = { kind: 'outcome_unknown', why: message, raisedAt: at } as const;
  return [
    { type: 'work-changed', work: begunCall(work, key) },
    { type: 'request-raised', work: work.name, request },
  ];
}

/** Returns the events of a result of which a part could not be stored. */
export function lossEvents({ reports }: Pick<ToolSuccess, 'reports'>): readonly RunEvent[] {
  return reports === undefined ? [] : [{ type: 'values-lost', reports }];
}

/** Returns the events of a call that succeeded. It is kept if it can be undone. */
export function succeeded(
  { call, tool, key, work }: OpenCall,
  success: ToolSuccess,
  at: number,
): readonly RunEvent[] {
  const result = succeededCall(call, tool, success);
  const { turn, step } = parseCallId(call);
  const { text, blob, summary } = success;
  const named = summary === undefined ? call : { ...call, summary };
  const kept = keptOf(tool, { call: named, turn, step, key, text, ...(blob && { blob }), at });
  return [
    ...lossEvents(success),
    ...finishCall(underGrant({ work }, result), at),
    ...(kept === null ? [] : [{ type: 'undo-enabled', kept, at } as const]),
  ];
}

/** Returns the events of a tool's activity that failed permanently or lost its worker. */
export function callFailed(state: RunState, fact: EndOf<'failed'>): readonly RunEvent[] {
  const open = openCallOf(state, fact);
  const spent = spentEvents(parsePayment(fact.failure.details));
  if (open === null) return [...spent, ...overAlready(state, fact)];
  const { call } = open;
  const reasons = nodeOfCall(call) === null ? TOOL_BLOCKS : NODE_BLOCKS;
  const problem = getInterruption(state) === null ? blockingProblem(fact, reasons) : null;
  if (problem !== null) return [...spent, ...blockWork(state, fact, problem)];
  return [...spent, ...lostEvents(open, fact)];
}

/** Returns the events of a call whose activity has failed or has lost its worker. */
function lostEvents(open: OpenCall, fact: EndOf<'failed'>): readonly RunEvent[] {
  const { call, tool } = open;
  const { message, timedOut } = fact.failure;
  if (isSearch(open.work)) return finishCall(notExecuted(call, message), fact.at);
  const lost = lostMessage(tool.name, message);
  // The worker reports known outcomes as results, so the outcome is unknown after a failure. The
  // model would repeat a `keyed` call under another key.
  const mayHaveActed = tool.effect === 'once' || (tool.effect === 'keyed' && timedOut);
  if (mayHaveActed) return unknownOutcome(open, lost, fact.at);
  const result = timedOut
    ? lostCall(call, lost)
    : failedCall(call, { type: 'tool_error', message });
  return finishCall(underGrant(open, result), fact.at);
}

/** Adds the grant to the result of a call that was made under one, regardless of the outcome. */
function underGrant({ work }: Pick<OpenCall, 'work'>, result: CallResult): CallResult {
  return work.grant === undefined ? result : { ...result, grant: work.grant };
}

/**
 * Returns the events of a tool's activity that was canceled by an interruption, by `resume`, or by
 * the end of the segment.
 */
export function callCanceled(state: RunState, fact: EndOf<'cancelled'>): readonly RunEvent[] {
  const open = openCallOf(state, fact);
  const { paid, ...payment } = parsePayment(fact.details);
  const spent = spentEvents(payment);
  if (open === null) return [...spent, ...overAlready(state, fact)];
  const { call, tool, work } = open;
  if (getInterruption(state) !== null)
    return [...spent, ...finishCall(cancelledCall(call, tool), fact.at)];
  const mayHaveActed = work.phase === 'in-flight' && work.as !== 'find';
  if (mayHaveActed && tool.effect === 'once') {
    return unknownOutcome(open, lostMessage(tool.name, 'the activity was canceled'), fact.at);
  }
  return [...spent, ...probeCanceled(state, fact, paid)];
}

/** Returns the events of a deadline that has passed at `now` (Unix time in ms). */
export function passedDeadline(state: RunState, now: number): readonly RunEvent[] {
  return [...expired(state, now), ...passedLimit(state, now)];
}

function passedLimit(state: RunState, now: number): readonly RunEvent[] {
  const deadline = nextDeadline(state);
  if (deadline === null || deadline.at > now) return [];
  const isOfRun = deadline.of === 'run';
  // The interruption of a turn's deadline is requested once, and applied when its work has stopped.
  if (!isOfRun && getInterruption(state) !== null) return [];
  return [
    ...(isOfRun ? [{ type: 'end-requested', by: 'wallMs' } as const] : []),
    ...(inTurn(state) ? [{ type: 'interruption-requested', by: 'wallMs' } as const] : []),
  ];
}

/** Returns the events of the requests that have expired at `at` (Unix time in ms). */
function expired(state: RunState, at: number): readonly RunEvent[] {
  // A decision that arrived in time and is still being checked counts.
  const waiting = askingWork(state).filter(({ proposal }) => proposal === undefined);
  return waiting.flatMap((work) => expireIfDue(state, work, at));
}

/**
 * Returns the events of a request that has expired at `at` (Unix time in ms); none if it has not.
 */
export function expireIfDue(state: RunState, work: AskingWork, at: number): readonly RunEvent[] {
  const { request, name } = work;
  if (request.expiresAt === undefined || request.expiresAt > at) return [];
  const decision: RecordedDecision = {
    what: 'resolve',
    id: '',
    at,
    request: request.id,
    ...(request.kind !== 'limit' && { call: name }),
    as: 'expired',
  };
  return [...afterExpiry(state, work, at), { type: 'decision-recorded', decision }];
}

function afterExpiry(state: RunState, work: AskingWork, at: number): readonly RunEvent[] {
  const { name, request } = work;
  const over: RunEvent = { type: 'work-ended', name };
  if (request.kind === 'limit') return [over, { type: 'limit-kept' }];
  const why = `no decision within ${formatDuration((request.expiresAt ?? at) - request.raisedAt, { as: 'exact' })}`;
  if (isUndo(work)) {
    const call = name.slice(UNDO.length);
    return [over, { type: 'undo-changed', call, state: 'denied', message: why }];
  }
  const call = callOfWork(state, name);
  if (isServerAsk(work)) return serverAnswered(state, work, { action: 'cancel' }, at);
  return call === undefined ? [over] : finishCall({ ...deniedCall(call, why), expired: true }, at);
}
