import { parseProblem } from '../../core/failure.js';
import { isObject } from '../../core/json.js';
import type { Message, ToolCall } from '../../core/transcript/messages.js';
import {
  fitsActivity,
  isFollowResult,
  isForked,
  isFunctionResult,
  isArchiveResult,
  isReply,
  isRetrieval,
  isRunConfig,
  isToolResult,
  misfitMessage,
  type RunFunctionResult,
  type ArchiveMessagesResult,
  type RetrieveResult,
} from '../../core/guards/recorded.js';
import type { RecordedReply } from '../../core/reply.js';
import { toUsage } from '../../core/spend.js';
import type { HistoryEvent } from '../decode-event.js';
import { blockedBy, mayBeProbe, storageRestored, workScheduled, unblockedBy } from './blocks.js';
import { safetyAsked } from './safety.js';
import { agentLoaded, agentNotLoaded, forkedFrom, local, started } from './beginning.js';
import { ended } from './end.js';
import { hasCallsInFlight, interrupt, emit } from './emit.js';
import { catchUp, turnEnded, advanceTurns } from './turns.js';
import type { EventOf, InFlight, ProjectionState } from './state.js';
import { applyPersonEvent, taskStarted } from './people.js';
import {
  childEnded,
  childFollowed,
  removeChild,
  childFollowFailed,
  childStarted,
} from './children.js';
import { callCanceled, callFailed, callReturned } from './calls.js';

/** Activities of a turn. Each shows that the workflow has reached it. */
const STEPS: readonly string[] = ['callModel', 'runTool', 'retrieveDocuments'];

/** Applies the next event. Skips one that it cannot interpret: a reader never throws. */
export function applyHistoryEvent(projection: ProjectionState, event: HistoryEvent): void {
  projection.startedAt ??= event.at;
  try {
    take(projection, event);
    advanceTurns(projection, event.at);
    safetyAsked(projection, event.id);
  } catch {
    // The server accepts more than the workflow does, from anyone who may complete an activity.
  }
}

function take(projection: ProjectionState, event: HistoryEvent): void {
  switch (event.type) {
    case 'started':
      return started(projection, event);
    case 'local':
      return local(projection, event);
    case 'scheduled':
      return scheduled(projection, event);
    case 'completed':
      return completed(projection, event);
    case 'failed':
      return failed(projection, event);
    case 'cancelled':
      return canceled(projection, event);
    case 'child-started':
      catchUp(projection, event.at, { activity: 'agent', input: {} });
      return childStarted(projection, event);
    case 'child-existed':
      return removeChild(projection, event.call);
    case 'child-ended':
      return childEnded(projection, event);
    case 'update':
    case 'signal':
      if (projection.state === null) projection.earlyMessages.push(event);
      else applyPersonEvent(projection, event);
      return;
    case 'memo':
      return turnEnded(projection, event);
    case 'cancel-requested':
      projection.cancelRequested = true;
      return emit(projection, { type: 'ending', by: 'cancelled' });
    case 'ended':
      return ended(projection, event);
    case 'task-started':
      return taskStarted(projection, event.at);
    case 'task-completed':
      projection.unseenRefusals = 0;
      return;
    default:
  }
}

function scheduled(projection: ProjectionState, event: EventOf<'scheduled'>): void {
  const { activity, activityId, summary, at } = event;
  const input = isObject(event.input) ? event.input : {};
  if (STEPS.includes(activity)) catchUp(projection, at, { activity, input });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  const call = isObject(input['call']) ? (input['call'] as unknown as ToolCall) : null;
  const begun = { activity, activityId, summary, call, input, at };
  projection.inFlight.set(event.id, begun);
  workScheduled(projection, begun);
}

function completed(projection: ProjectionState, event: EventOf<'completed'>): void {
  const done = takeInFlight(projection, event.scheduled);
  if (done === undefined) return;
  // Its result has no content, and the workflow ignores it.
  if (done.activity === 'checkBlob') return storageRestored(projection, done);
  const { result, at } = event;
  const { activity, call } = done;
  if (!fitsActivity(activity, result)) {
    const failure = { message: misfitMessage(activity, result), timedOut: false, details: [] };
    return activityFailed(projection, { ...event, failure }, done);
  }
  unblockedBy(projection, done);
  if (activity === 'loadAgent' && isRunConfig(result)) agentLoaded(projection, result, at);
  if (activity === 'forkMessages' && isForked(result)) forkedFrom(projection, done, result);
  if (activity === 'archiveMessages' && isArchiveResult(result)) kept(projection, done, result);
  if (activity === 'retrieveDocuments' && isRetrieval(result)) retrieved(projection, result, at);
  if (activity === 'callModel' && isReply(result)) replied(projection, { done, reply: result, at });
  if (activity === 'followRun' && isFollowResult(result))
    childFollowed(projection, { done, result, at });
  if (call === null) return;
  if (activity === 'runTool' && isToolResult(result))
    callReturned(projection, event, { call, result });
  if (activity === 'runFunction' && isFunctionResult(result))
    verified(projection, event, { call, result });
}

/** Applies the result of `verify`. If the effect did not happen, the call is scheduled again. */
function verified(
  projection: ProjectionState,
  event: EventOf<'completed'>,
  { call, result }: { call: ToolCall; result: RunFunctionResult },
): void {
  switch (result.happened) {
    case true:
      return callReturned(projection, event, { call, result: result.result });
    case 'unknown':
      return callReturned(projection, event, {
        call,
        result: { ok: 'unknown', message: result.message },
      });
    case false:
  }
}

function replied(
  projection: ProjectionState,
  { done, reply, at }: { done: InFlight; reply: RecordedReply; at: number },
): void {
  projection.blocked.delete('model');
  const cut = done.input['compact'];
  const before = projection.messages.length;
  if (typeof cut === 'number') emit(projection, { type: 'compacted', cut, reply, at });
  else emit(projection, { type: 'model-replied', reply, at });
  const added = projection.messages.slice(before).find(isFromModel);
  const price = projection.state?.config.price ?? null;
  if (added !== undefined) projection.usageByMessage.set(added.n, toUsage(reply.usage, price));
}

function isFromModel(message: Message): boolean {
  return message.role === 'assistant' || (message.role === 'user' && !!message.compacts);
}

function failed(projection: ProjectionState, event: EventOf<'failed'>): void {
  const done = takeInFlight(projection, event.scheduled);
  if (done?.activity === 'checkBlob') return storageRestored(projection, done);
  if (done !== undefined) activityFailed(projection, event, done);
}

/** An activity failed permanently, or its result does not fit it. */
function activityFailed(
  projection: ProjectionState,
  event: Pick<EventOf<'failed'>, 'id' | 'at' | 'failure'>,
  done: InFlight,
): void {
  const { failure } = event;
  const problem = parseProblem(failure.details);
  if (done.activity === 'loadAgent') return agentNotLoaded(projection, event);
  if (projection.state === null) return;
  if (problem?.type !== 'blocked') unblockedBy(projection, done);
  const closing = done.input['closing'] === true;
  if (problem?.type === 'blocked' && closing) {
    // A closing call never waits: the turn ends without its answer instead.
    emit(projection, { type: 'model-failed', reason: 'error', message: problem.message });
  } else if (problem?.type === 'blocked') {
    blockedBy(projection, event, done, problem);
  } else if (done.activity === 'callModel') {
    const fallback = { reason: 'error', message: failure.message } as const;
    const { reason, message } = problem?.type === 'failed' ? problem : fallback;
    const cut = done.input['compact'];
    if (typeof cut === 'number')
      emit(projection, { type: 'compacted', cut, reply: null, at: event.at });
    else emit(projection, { type: 'model-failed', reason, message });
  } else if (done.activity === 'retrieveDocuments') {
    const message = problem?.message ?? `retrieve: ${failure.message}`;
    emit(projection, { type: 'retrieval-failed', message });
  } else if (done.activity === 'followRun') {
    childFollowFailed(projection, { done, message: failure.message, at: event.at });
  } else if (done.activity === 'runTool' && done.call !== null) {
    callFailed(projection, event, { call: done.call, failure });
  }
}

function canceled(projection: ProjectionState, event: EventOf<'cancelled'>): void {
  const done = takeInFlight(projection, event.scheduled);
  // Its work is tried again unblocked, or stays blocked for a new segment.
  if (done?.activity === 'checkBlob') return;
  if (done === undefined || projection.state === null) return;
  if (done.call !== null) callCanceled(projection, done.call);
  // `resume` cancels only probes. The block of the work shows that this was one.
  if (hasCallsInFlight(projection) || mayBeProbe(projection)) return;
  interrupt(projection, event.at);
}

function takeInFlight(projection: ProjectionState, scheduledEvent: number): InFlight | undefined {
  const done = projection.inFlight.get(scheduledEvent);
  projection.inFlight.delete(scheduledEvent);
  return done;
}

// The results of activities other than steps, as the events that the workflow makes of them.

function retrieved(projection: ProjectionState, { documents }: RetrieveResult, at: number): void {
  emit(projection, { type: 'documents-retrieved', documents, at });
}

function kept(
  projection: ProjectionState,
  { input }: InFlight,
  { blob }: ArchiveMessagesResult,
): void {
  const { archive, chunk } = input;
  const archived = isObject(archive) ? Number(archive['to']) : 0;
  const count = isObject(chunk) ? Number(chunk['to']) - Number(chunk['from']) : 0;
  const stored = blob === undefined ? null : { blob, count };
  emit(projection, { type: 'messages-archived', archived, chunk: stored });
}
