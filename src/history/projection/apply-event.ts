import { parseProblem } from '../../core/failure.js';
import { isObject, textField } from '../../core/json.js';
import type { Message, ToolCall } from '../../core/transcript/messages.js';
import {
  fitsActivity,
  isFollowed,
  isForked,
  isFunctionResult,
  isKept,
  isReply,
  isRetrieved,
  isRunConfig,
  isToolResult,
  misfitMessage,
  type RunFunctionResult,
  type ForkMessagesResult,
  type KeepMessagesResult,
  type RetrieveResult,
} from '../../core/guards/recorded.js';
import type { RecordedReply } from '../../core/reply.js';
import { toUsage } from '../../core/spend.js';
import type { HistoryEvent } from '../decode-event.js';
import { blockedBy, isProbed, storageBack, triedAgain, unblockedBy } from './blocks.js';
import { safetyAsked } from './safety.js';
import { loadedAgain, local, notLoaded, started } from './beginning.js';
import { ended } from './end.js';
import { callsRunning, interrupt, tell } from './emit.js';
import { catchUp, turnOver, windUp } from './turns.js';
import type { EventOf, InFlight, ProjectionState } from './state.js';
import { personSaid, taskBegun } from './people.js';
import {
  childEnded,
  childFollowed,
  childGone,
  childNotFollowed,
  childStarted,
} from './children.js';
import { callBrokenOff, callFailed, callReturned } from './calls.js';

/** Work within a turn, of which each shows that the engine has come so far. */
const STEPS: readonly string[] = ['callModel', 'runTool', 'retrieveDocuments'];

/** Takes in the next event. One that cannot be understood is passed over: a reader never throws. */
export function applyHistoryEvent(told: ProjectionState, fact: HistoryEvent): void {
  told.lastEvent = fact.id;
  told.startedAt ??= fact.at;
  try {
    take(told, fact);
    windUp(told, fact.at);
    safetyAsked(told, fact.id);
  } catch {
    // The server accepts more than the workflow does, from anyone who may complete an activity.
  }
}

function take(told: ProjectionState, fact: HistoryEvent): void {
  switch (fact.type) {
    case 'started':
      return started(told, fact);
    case 'local':
      return local(told, fact);
    case 'scheduled':
      return scheduled(told, fact);
    case 'completed':
      return completed(told, fact);
    case 'failed':
      return failed(told, fact);
    case 'cancelled':
      return brokenOff(told, fact);
    case 'child-started':
      catchUp(told, fact.at, { activity: 'agent', input: {} });
      return childStarted(told, fact);
    case 'child-existed':
      return childGone(told, fact.call);
    case 'child-ended':
      return childEnded(told, fact);
    case 'update':
    case 'signal':
      if (told.state === null) told.early.push(fact);
      else personSaid(told, fact);
      return;
    case 'memo':
      return turnOver(told, fact);
    case 'cancel-requested':
      told.cancelRequested = true;
      return tell(told, { type: 'ending', by: 'cancelled' });
    case 'ended':
      return ended(told, fact);
    case 'task-started':
      return taskBegun(told, fact.at);
    case 'task-completed':
      told.unseenRefusals = 0;
      return;
    default:
  }
}

function scheduled(told: ProjectionState, fact: EventOf<'scheduled'>): void {
  const { activity, activityId, summary, at } = fact;
  const input = isObject(fact.input) ? fact.input : {};
  if (STEPS.includes(activity)) catchUp(told, at, { activity, input });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  const call = isObject(input['call']) ? (input['call'] as unknown as ToolCall) : null;
  const begun = { activity, activityId, summary, call, input, at };
  told.inFlight.set(fact.id, begun);
  triedAgain(told, begun);
}

function completed(told: ProjectionState, fact: EventOf<'completed'>): void {
  const done = takeDone(told, fact.scheduled);
  if (done === undefined) return;
  // Its result says nothing, and the workflow does not look at it.
  if (done.activity === 'checkBlob') return storageBack(told, done);
  const { result, at } = fact;
  const { activity, call } = done;
  if (!fitsActivity(activity, result)) {
    const failure = { message: misfitMessage(activity, result), timedOut: false, details: [] };
    return notDone(told, { ...fact, failure }, done);
  }
  unblockedBy(told, done);
  if (activity === 'loadAgent' && isRunConfig(result)) loadedAgain(told, result, at);
  if (activity === 'forkMessages' && isForked(result)) forkedFrom(told, done, result);
  if (activity === 'keepMessages' && isKept(result)) kept(told, done, result);
  if (activity === 'retrieveDocuments' && isRetrieved(result)) retrieved(told, result, at);
  if (activity === 'callModel' && isReply(result)) replied(told, { done, reply: result, at });
  if (activity === 'followRun' && isFollowed(result)) childFollowed(told, { done, result, at });
  if (call === null) return;
  if (activity === 'runTool' && isToolResult(result)) callReturned(told, fact, { call, result });
  if (activity === 'runFunction' && isFunctionResult(result))
    verified(told, fact, { call, result });
}

/** What `verify` found; where it did not happen, the call is scheduled again. */
function verified(
  told: ProjectionState,
  fact: EventOf<'completed'>,
  { call, result }: { call: ToolCall; result: RunFunctionResult },
): void {
  switch (result.happened) {
    case true:
      return callReturned(told, fact, { call, result: result.result });
    case 'unknown':
      return callReturned(told, fact, { call, result: { ok: 'unknown', message: result.message } });
    case false:
  }
}

function replied(
  told: ProjectionState,
  { done, reply, at }: { done: InFlight; reply: RecordedReply; at: number },
): void {
  told.blocked.delete('model');
  const cut = done.input['compact'];
  const before = told.said.length;
  if (typeof cut === 'number') tell(told, { type: 'compacted', cut, reply, at });
  else tell(told, { type: 'model-replied', reply, at });
  const brought = told.said.slice(before).find(isOfModel);
  const price = told.state?.config.price ?? null;
  if (brought !== undefined) told.paid.set(brought.n, toUsage(reply.usage, price));
}

function isOfModel(message: Message): boolean {
  return message.role === 'assistant' || (message.role === 'user' && !!message.compacts);
}

function failed(told: ProjectionState, fact: EventOf<'failed'>): void {
  const done = takeDone(told, fact.scheduled);
  if (done?.activity === 'checkBlob') return storageBack(told, done);
  if (done !== undefined) notDone(told, fact, done);
}

/** An activity failed for good, or left what is no result of its. */
function notDone(
  told: ProjectionState,
  fact: Pick<EventOf<'failed'>, 'id' | 'at' | 'failure'>,
  done: InFlight,
): void {
  const { failure } = fact;
  const problem = parseProblem(failure.details);
  if (done.activity === 'loadAgent') return notLoaded(told, fact);
  if (told.state === null) return;
  if (problem?.type !== 'blocked') unblockedBy(told, done);
  const closing = done.input['closing'] === true;
  if (problem?.type === 'blocked' && closing) {
    // A closing call waits for nobody: it has a rung below it.
    tell(told, { type: 'model-failed', reason: 'error', message: problem.message });
  } else if (problem?.type === 'blocked') {
    blockedBy(told, fact, done, problem);
  } else if (done.activity === 'callModel') {
    const lost = { reason: 'error', message: failure.message } as const;
    const { reason, message } = problem?.type === 'failed' ? problem : lost;
    const cut = done.input['compact'];
    if (typeof cut === 'number') tell(told, { type: 'compacted', cut, reply: null, at: fact.at });
    else tell(told, { type: 'model-failed', reason, message });
  } else if (done.activity === 'retrieveDocuments') {
    const message = problem?.message ?? `retrieve: ${failure.message}`;
    tell(told, { type: 'retrieval-failed', message });
  } else if (done.activity === 'followRun') {
    childNotFollowed(told, { done, message: failure.message, at: fact.at });
  } else if (done.activity === 'runTool' && done.call !== null) {
    callFailed(told, fact, { call: done.call, failure });
  }
}

function brokenOff(told: ProjectionState, fact: EventOf<'cancelled'>): void {
  const done = takeDone(told, fact.scheduled);
  // Its work is tried again, without being blocked any more, or is left, blocked, for a new segment.
  if (done?.activity === 'checkBlob') return;
  if (done === undefined || told.state === null) return;
  if (done.call !== null) callBrokenOff(told, done.call);
  // `resume` cancels a probe, and nothing but the probe; the block it had shows that it was one.
  if (callsRunning(told) || isProbed(told)) return;
  interrupt(told, fact.at);
}

function takeDone(told: ProjectionState, scheduledEvent: number): InFlight | undefined {
  const done = told.inFlight.get(scheduledEvent);
  told.inFlight.delete(scheduledEvent);
  return done;
}

// What activities beside the steps have brought, told as the events that the workflow made of it.

function retrieved(told: ProjectionState, { documents }: RetrieveResult, at: number): void {
  tell(told, { type: 'documents-retrieved', documents, at });
}

function kept(told: ProjectionState, { input }: InFlight, { blob }: KeepMessagesResult): void {
  const { archive, chunk } = input;
  const archived = isObject(archive) ? Number(archive['to']) : 0;
  const count = isObject(chunk) ? Number(chunk['to']) - Number(chunk['from']) : 0;
  const stored = blob === undefined ? null : { blob, count };
  tell(told, { type: 'messages-kept', archived, chunk: stored });
}

function forkedFrom(
  told: ProjectionState,
  { input }: InFlight,
  { next, pinned = [], from: read, ...taken }: ForkMessagesResult,
): void {
  const from = { run: textField(input, 'run'), runId: read.runId, at: next };
  tell(told, { type: 'forked', ...taken, from, pinned });
}
