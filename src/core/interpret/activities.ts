import type {
  ArchiveMessagesResult,
  CheckDecisionResult,
  ForkMessagesResult,
  RetrieveResult,
  RunFunctionResult,
} from '../guards/recorded.js';
import { isLoaded } from '../rules/limits.js';
import type { Completed, EndOf, RunEvent } from '../run/events.js';
import { getInterruption } from '../state/change.js';
import type { RunConfig, RunState } from '../state/state.js';
import { inTurn } from '../state/turn.js';
import { WORK, type Work, begunCall, findWork } from '../state/work.js';
import { isObject, textField } from '../text/json.js';
import {
  AGENT_BLOCKS,
  type AttemptReport,
  MODEL_BLOCKS,
  type RecordedReply,
  TOOL_BLOCKS,
} from '../transcript/outcome.js';
import {
  blockWork,
  blockingProblem,
  parsePayment,
  parseProblem,
  probeCanceled,
  unblocked,
} from './block.js';
import { type OpenCall, askForOutcome, callCanceled, openCallOf, succeeded } from './calls.js';
import { decisionChecked } from './decide.js';

// How the activities end whose work is not the execution of a call.

const RETRIEVED: RunEvent = { type: 'work-ended', name: WORK.retrieve };

export function retrieved(
  _state: RunState,
  { result, at }: Completed<RetrieveResult>,
): readonly RunEvent[] {
  return [RETRIEVED, { type: 'documents-retrieved', documents: result.documents, at }];
}

/** A failed retrieval ends the turn, because its author does not want an answer without sources. */
export function retrievalFailed(state: RunState, fact: EndOf<'failed'>): readonly RunEvent[] {
  if (getInterruption(state) !== null) return [RETRIEVED];
  const blocking = blockingProblem(fact, TOOL_BLOCKS);
  if (blocking !== null) return blockWork(state, fact, blocking);
  const { details, message: cause } = fact.failure;
  const message = parseProblem(details)?.message ?? `retrieve: ${cause}`;
  return [RETRIEVED, { type: 'retrieval-failed', message }];
}

export function retrievalCanceled(state: RunState, fact: EndOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : [RETRIEVED];
}

/** The turn is remembered, or a cancel of the run has kept it from that. */
export function remembered(reports: readonly AttemptReport[] = []): readonly RunEvent[] {
  return [
    { type: 'work-ended', name: WORK.remember },
    { type: 'turn-remembered', reports },
  ];
}

/** The outcome stands, whatever becomes of the memory, so a failure is only reported. */
export function notRemembered({ failure, at }: EndOf<'failed'>): readonly RunEvent[] {
  const { message: cause, details } = failure;
  const lost = { type: 'remember_failed', attempt: 1, waitMs: 0, at, message: cause.slice(0, 300) };
  return remembered(parseProblem(details)?.reports ?? [lost]);
}

/** A tool's `verify` reported whether a call happened. If it does not know, a person decides. */
export function verified(state: RunState, fact: Completed<RunFunctionResult>): readonly RunEvent[] {
  const open = openCallOf(state, fact);
  const { result: found } = fact;
  if (open === null) return [];
  const { work } = open;
  if (found.happened === false) {
    return [{ type: 'work-changed', work: { ...begunCall(work), retried: true } }];
  }
  if (found.happened === true && found.result.ok === true) {
    return succeeded(open, found.result, fact.at);
  }
  return askAfterVerify(open, fact.at);
}

export function verificationFailed(state: RunState, fact: EndOf<'failed'>): readonly RunEvent[] {
  const open = openCallOf(state, fact);
  if (open === null) return [];
  const problem = blockingProblem(fact, ['storage']);
  if (problem !== null && getInterruption(state) === null) return blockWork(state, fact, problem);
  return askAfterVerify(open, fact.at);
}

function askAfterVerify(open: OpenCall, at: number): readonly RunEvent[] {
  return askForOutcome(open, open.work.unknown ?? '', at);
}

const MODEL_ENDED: RunEvent = { type: 'work-ended', name: WORK.model };

/**
 * Returns the events of a model's reply. A reply despite an interruption counts, because it is paid
 * for.
 */
export function modelReplied(
  _state: RunState,
  { task, result: reply, at }: Completed<RecordedReply>,
): readonly RunEvent[] {
  const cut = cutIn(task.input);
  if (cut !== null) return [MODEL_ENDED, { type: 'transcript-compacted', cut, reply, at }];
  return [MODEL_ENDED, { type: 'model-replied', reply, at }];
}

/**
 * Returns the events of a permanently failed model call. A failed closing call is not retried: the
 * engine composes the answer.
 */
export function modelFailed(state: RunState, fact: EndOf<'failed'>): readonly RunEvent[] {
  const { failure, task, at } = fact;
  const used = usedIn(failure.details);
  if (getInterruption(state) !== null) return [MODEL_ENDED, ...used, ...refusedBefore(state)];
  const isClosing = isObject(task.input) && task.input['closing'] === true;
  const blocking = isClosing ? null : blockingProblem(fact, MODEL_BLOCKS);
  if (blocking !== null) return [...used, ...blockWork(state, fact, blocking)];
  const cut = cutIn(task.input);
  if (cut !== null) return [MODEL_ENDED, { type: 'transcript-compacted', cut, reply: null, at }];
  const problem = parseProblem(failure.details);
  const failed = problem?.type === 'failed' ? problem : undefined;
  if (failed?.limit !== undefined && !isClosing) {
    return [MODEL_ENDED, ...used, { type: 'limit-hit', limit: failed.limit }];
  }
  const reason = failed?.reason ?? 'error';
  const message = problem?.message ?? failure.message;
  const refused = failed?.refused && { refused: failed.refused };
  return [MODEL_ENDED, ...used, { type: 'model-failed', reason, message, at, ...refused }];
}

/**
 * Returns the events of a canceled model call. The paid replies of a decision function count and
 * are kept for a later attempt.
 */
export function modelCanceled(state: RunState, fact: EndOf<'cancelled'>): readonly RunEvent[] {
  const used = usedIn(fact.details);
  if (getInterruption(state) !== null) return [MODEL_ENDED, ...used, ...refusedBefore(state)];
  const { paid } = parsePayment(fact.details);
  return [...used, ...probeCanceled(state, fact, paid)];
}

/**
 * Returns the event that the provider has refused the newest messages, if that is why the call was
 * blocked when it was interrupted.
 */
function refusedBefore(state: RunState): readonly RunEvent[] {
  const isRefused = findWork(state, WORK.model)?.block?.reason === 'bad_request';
  return isRefused ? [{ type: 'messages-refused', refused: 'message' }] : [];
}

function usedIn(details: readonly unknown[] | undefined): readonly RunEvent[] {
  const { used } = parsePayment(details);
  return used === undefined ? [] : [{ type: 'tokens-used', used }];
}

function cutIn(input: unknown): number | null {
  const cut = isObject(input) ? input['compact'] : null;
  return typeof cut === 'number' ? cut : null;
}

const AGENT_ENDED: RunEvent = { type: 'work-ended', name: WORK.agent };

/**
 * Returns the events of a loaded agent, at the start of the run or before a turn that requested a
 * refresh.
 */
export function agentLoaded(
  state: RunState,
  { result: config }: Completed<RunConfig>,
): readonly RunEvent[] {
  if (isLoaded(state)) return [AGENT_ENDED, { type: 'agent-refreshed', config }];
  const requested = (state.requestedLimits ?? []).filter(
    ({ limits }) => config.price !== null || !limitsCost(limits),
  );
  return [
    AGENT_ENDED,
    { type: 'agent-loaded', config },
    ...requested.flatMap(({ limits, decision }): readonly RunEvent[] => [
      { type: 'limits-set', limits },
      { type: 'decision-recorded', decision },
    ]),
  ];
}

/** Whether limits include one on money, which needs the model's price. */
export function limitsCost(limits: unknown): boolean {
  const { costUsd, run } = isObject(limits) ? limits : {};
  return [costUsd, isObject(run) ? run['costUsd'] : null].some((cost) => typeof cost === 'number');
}

/**
 * Returns the events of an agent that could not be loaded. The run waits for a worker that has the
 * agent, or for a store that accepts the run's context. A run that only requested a refresh keeps
 * its current definition.
 */
export function agentFailed(state: RunState, fact: EndOf<'failed'>): readonly RunEvent[] {
  const { failure, task } = fact;
  // The worker needs more time than the first attempt allows, so a longer attempt follows.
  if (failure.type === 'AgentNeedsTime') return [waiting(state, { slow: true })];
  const problem = parseProblem(failure.details);
  const isLocal = isObject(task.input) && task.input['local'] === true;
  // Another worker may have the agent.
  if (isLocal && problem?.type !== 'failed')
    return [waiting(state, problem === null ? {} : { missing: problem.message })];
  if (getInterruption(state) !== null) return endLoading(state);
  const name = state.config.definition.name;
  const missing = findWork(state, WORK.agent)?.missing;
  const lost = {
    type: 'blocked',
    reason: 'agent_missing',
    // If no other worker answered in time, the first worker's answer applies.
    message: missing ?? `agent: no worker has loaded "${name}" in time; start one that has it`,
  } as const;
  const found = problem ?? (failure.timedOut ? lost : null);
  const reasons: readonly string[] = isLoaded(state) ? ['storage'] : AGENT_BLOCKS;
  if (found?.type !== 'blocked' || !reasons.includes(found.reason)) return endLoading(state);
  return blockWork(state, fact, found);
}

export function agentCanceled(state: RunState): readonly RunEvent[] {
  const work = findWork(state, WORK.agent);
  if (getInterruption(state) !== null || work === undefined) return endLoading(state);
  return [waiting(state, {})];
}

/** Returns the events that end the run, or that keep its current definition. */
function endLoading(state: RunState): readonly RunEvent[] {
  return isLoaded(state) ? [AGENT_ENDED, { type: 'agent-refreshed', config: null }] : [AGENT_ENDED];
}

function waiting(state: RunState, learned: Pick<Work, 'missing' | 'slow'>): RunEvent {
  const { resumed, block, ...work }: Partial<Work> = findWork(state, WORK.agent) ?? {};
  const changed: Work = {
    ...work,
    name: WORK.agent,
    ...learned,
    ...(block && !resumed && { block }),
    phase: 'waiting',
  };
  return { type: 'work-changed', work: changed };
}

const ARCHIVED: RunEvent = { type: 'work-ended', name: WORK.archive };
const FORKED: RunEvent = { type: 'work-ended', name: WORK.fork };

/** Returns the events of messages written to the archive, to the blob store, or to both. */
export function archived(
  _state: RunState,
  { task, result }: Completed<ArchiveMessagesResult>,
): readonly RunEvent[] {
  const { archive, chunk } = isObject(task.input) ? task.input : {};
  const to = isObject(archive) ? Number(archive['to']) : 0;
  const { blob } = result;
  const stored =
    blob === undefined || !isObject(chunk)
      ? null
      : { blob, count: Number(chunk['to']) - Number(chunk['from']) };
  return [ARCHIVED, { type: 'messages-archived', archived: to, chunk: stored }];
}

/**
 * Returns the events when the store is down. A run with room in its segment stays there, and a
 * compaction that needs the archive is abandoned. Otherwise, the run is blocked.
 */
export function archiveFailed(state: RunState, fact: EndOf<'failed'>): readonly RunEvent[] {
  const { input } = fact.task;
  const must = isObject(input) && input['must'] === true;
  const problem =
    must && getInterruption(state) === null ? blockingProblem(fact, ['storage']) : null;
  return problem === null ? archiveGivenUp(state, fact) : blockWork(state, fact, problem);
}

export function archiveCanceled(state: RunState, fact: EndOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : archiveGivenUp(state, fact);
}

function archiveGivenUp(
  state: RunState,
  { task, at }: Pick<EndOf<'failed'>, 'task' | 'at'>,
): readonly RunEvent[] {
  const cut = isObject(task.input) ? task.input['cut'] : undefined;
  if (typeof cut !== 'number') return [ARCHIVED, { type: 'segment-kept', at }];
  const isWanted = inTurn(state) && getInterruption(state) === null;
  return [
    ARCHIVED,
    ...(isWanted ? [{ type: 'transcript-compacted', cut, reply: null, at } as const] : []),
  ];
}

/** Returns the events of messages copied from another run before the first turn. */
export function copied(
  _state: RunState,
  { task, result }: Completed<ForkMessagesResult>,
): readonly RunEvent[] {
  const { next, pinned = [], from: read, ...taken } = result;
  const run = isObject(task.input) ? textField(task.input, 'run') : '';
  const { begins: node, visit } = taken.graph ?? {};
  const place = node !== undefined && visit !== undefined && { node, visit };
  const from = { run, runId: read.runId, at: next, ...place };
  return [FORKED, { type: 'run-forked', ...taken, from, pinned }];
}

export function copyFailed(state: RunState, fact: EndOf<'failed'>): readonly RunEvent[] {
  const problem = blockingProblem(fact, ['storage']);
  if (problem === null || getInterruption(state) !== null) return [FORKED];
  return blockWork(state, fact, problem);
}

export function copyCanceled(state: RunState, fact: EndOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : [FORKED];
}

/**
 * Returns the events after a blob check. Whether it succeeded or failed, the work that reads the
 * blob is attempted.
 */
export function blobChecked(
  state: RunState,
  { work: name }: Pick<EndOf<'completed'>, 'work'>,
): readonly RunEvent[] {
  const work = findWork(state, name);
  return work === undefined ? [] : [{ type: 'work-changed', work: unblocked(work) }];
}

/**
 * Returns the events of a canceled check. After an interruption, the work ends and a call gets its
 * result.
 */
export function checkCanceled(state: RunState, fact: EndOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : callCanceled(state, fact);
}

/** Returns the id of the request that a task is about. */
export function requestIn({ task: { input } }: Pick<EndOf<'completed'>, 'task'>): string {
  const request = isObject(input) ? input['request'] : undefined;
  return isObject(request) ? textField(request, 'id') : '';
}

export function checkedDecision(
  state: RunState,
  fact: Completed<CheckDecisionResult>,
): readonly RunEvent[] {
  const { result, at, work: name } = fact;
  return decisionChecked(state, { name, request: requestIn(fact), result, at });
}

/**
 * Returns the events of a decision that cannot be checked: it has no effect, and the request stays
 * open.
 */
export function uncheckedDecision(
  state: RunState,
  { task, work: name, at }: Pick<EndOf<'failed'>, 'task' | 'work' | 'at'>,
  why: string,
): readonly RunEvent[] {
  const message = `the decision could not be checked: ${why}`;
  const result = { ok: false, message } as const;
  return decisionChecked(state, { name, request: requestIn({ task }), result, at });
}
