import {
  fitsActivity,
  isArchiveResult,
  isCheckedDecision,
  isForked,
  misfitMessage,
} from '../guards/recorded.js';
import { isLoaded } from '../rules/limits.js';
import { acceptSignal } from '../run/ask.js';
import { type Fact, type FactOf, type RunEvent, type Task, toWork } from '../run/events.js';
import { nextAction } from '../run/next-action.js';
import { getInterruption } from '../state/change.js';
import { grantFor } from '../state/consent.js';
import { type RunState, keepsEarlierMeaning } from '../state/state.js';
import { currentNode } from '../state/turn-definition.js';
import { inTurn } from '../state/turn.js';
import { WORK, type Work, callOfWork, findWork, isUndo } from '../state/work.js';
import { isObject, textField } from '../text/json.js';
import {
  agentCanceled,
  agentFailed,
  agentLoaded,
  modelCanceled,
  modelFailed,
  modelReplied,
  notRemembered,
  remembered,
  retrievalCanceled,
  retrievalFailed,
  retrieved,
  verificationCanceled,
  verificationFailed,
  verified,
} from './activities.js';
import { blockWork, blockingProblem, probeCanceled, unblocked } from './block.js';
import { callCanceled, callFailed, callReturned, passedDeadline } from './calls.js';
import { decisionChecked, undoFailed, undone } from './decide.js';
import {
  childEnded,
  childExisted,
  followFailed,
  followed,
  messageReceived,
  paused,
  resumed,
  updateEvents,
} from './people.js';

const ARCHIVED: RunEvent = { type: 'work-ended', name: WORK.archive };
const FORKED: RunEvent = { type: 'work-ended', name: WORK.fork };

/** Returns the events of messages written to the archive, to the blob store, or to both. */
function archived(_state: RunState, { task, result }: FactOf<'completed'>): readonly RunEvent[] {
  if (!isArchiveResult(result)) return [];
  const { archive, chunk } = isObject(task.input) ? task.input : {};
  const to = isObject(archive) ? Number(archive['to']) : 0;
  const count = isObject(chunk) ? Number(chunk['to']) - Number(chunk['from']) : 0;
  const stored = result.blob === undefined ? null : { blob: result.blob, count };
  return [ARCHIVED, { type: 'messages-archived', archived: to, chunk: stored }];
}

/**
 * Returns the events when the store is down. A run with room in its segment stays there, and a
 * compaction that needs the archive is abandoned. Otherwise, the run is blocked.
 */
function archiveFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  const { input } = fact.task;
  const must = isObject(input) && input['must'] === true;
  const problem =
    must && getInterruption(state) === null ? blockingProblem(fact, ['storage']) : null;
  return problem === null ? archiveGivenUp(state, fact) : blockWork(state, fact, problem);
}

function archiveCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : archiveGivenUp(state, fact);
}

function archiveGivenUp(
  state: RunState,
  { task, at }: Pick<FactOf<'failed'>, 'task' | 'at'>,
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
function copied(_state: RunState, { task, result }: FactOf<'completed'>): readonly RunEvent[] {
  if (!isForked(result)) return [];
  const { next, pinned = [], from: read, ...taken } = result;
  const run = isObject(task.input) ? textField(task.input, 'run') : '';
  const { begins: node, visit } = taken.graph ?? {};
  const place = node !== undefined && visit !== undefined && { node, visit };
  const from = { run, runId: read.runId, at: next, ...place };
  return [FORKED, { type: 'run-forked', ...taken, from, pinned }];
}

function copyFailed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  const problem = blockingProblem(fact, ['storage']);
  if (problem === null || getInterruption(state) !== null) return [FORKED];
  return blockWork(state, fact, problem);
}

function copyCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : [FORKED];
}

/**
 * Returns the events after a blob check. Whether it succeeded or failed, the work that reads the
 * blob is attempted.
 */
function blobChecked(
  state: RunState,
  { task }: Pick<FactOf<'completed'>, 'task'>,
): readonly RunEvent[] {
  const work = findWork(state, toWork(task)?.name ?? '');
  return work === undefined ? [] : [{ type: 'work-changed', work: unblocked(work) }];
}

/**
 * Returns the events of a canceled check. After an interruption, the work ends and a call gets its
 * result.
 */
function checkCanceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  return getInterruption(state) === null ? probeCanceled(state, fact) : callCanceled(state, fact);
}

/**
 * Returns the events for `reduce` that a fact causes in a run. Workflows and readers of histories
 * share these rules. The function is pure and never throws for a fact from a history: a fact
 * without meaning produces no events.
 */
export function interpret(state: RunState, fact: Fact): readonly RunEvent[] {
  switch (fact.type) {
    case 'clock':
      return passedDeadline(state, fact.at);
    case 'cancel-requested':
      return [{ type: 'end-requested', by: 'cancelled' }];
    case 'update':
      return updateEvents(state, fact);
    case 'signal': {
      if (fact.name === 'pause') return paused(state, fact);
      if (fact.name === 'resume') return resumed(state, fact);
      if (fact.name !== 'message') return [];
      const earlier = keepsEarlierMeaning(state, fact);
      return messageReceived(state, acceptSignal(state, fact.input, fact.at, earlier), fact);
    }
    case 'scheduled':
      return begin(state, fact);
    case 'completed':
      return completed(state, fact);
    case 'failed':
      return failed(state, fact);
    case 'cancelled':
      return canceled(state, fact);
    case 'child-ended':
      return childEnded(state, fact);
    case 'child-existed':
      return childExisted(state, fact);
    case 'segment-kept':
      return isLoaded(state) ? [{ type: 'segment-kept', at: fact.at }] : [];
  }
}

/**
 * Interprets a completed activity. An operator may complete one with any value, so a malformed
 * result counts as a failure.
 */
function completed(state: RunState, fact: FactOf<'completed'>): readonly RunEvent[] {
  const { activity } = fact.task;
  if (!fitsActivity(activity, fact.result)) {
    const message = misfitMessage(activity, fact.result);
    const details = [{ type: 'failed', reason: 'error', message }];
    const failure = { message, type: 'Failed', timedOut: false, details };
    return failed(state, { type: 'failed', at: fact.at, task: fact.task, failure });
  }
  switch (activity) {
    case 'loadAgent':
      return agentLoaded(state, fact);
    case 'callModel':
      return modelReplied(state, fact);
    case 'runTool':
      return callReturned(state, fact);
    case 'runFunction':
      return isUndoTask(fact) ? undone(state, fact) : verified(state, fact);
    case 'checkDecision':
      return checkedDecision(state, fact);
    case 'notifyRequest':
      return [{ type: 'request-notified', request: requestIn(fact) }];
    case 'retrieveDocuments':
      return retrieved(state, fact);
    case 'rememberTurn':
      return remembered();
    case 'archiveMessages':
      return archived(state, fact);
    case 'forkMessages':
      return copied(state, fact);
    case 'checkBlob':
      return blobChecked(state, fact);
    case 'followRun':
      return followed(state, fact);
    default:
      return [];
  }
}

function failed(state: RunState, fact: FactOf<'failed'>): readonly RunEvent[] {
  switch (fact.task.activity) {
    case 'loadAgent':
      return agentFailed(state, fact);
    case 'callModel':
      return modelFailed(state, fact);
    case 'runTool':
      return callFailed(state, fact);
    case 'runFunction':
      return isUndoTask(fact) ? undoFailed(state, fact) : verificationFailed(state, fact);
    case 'checkDecision':
      return uncheckedDecision(state, fact, fact.failure.message);
    case 'retrieveDocuments':
      return retrievalFailed(state, fact);
    case 'rememberTurn':
      return notRemembered(fact);
    case 'archiveMessages':
      return archiveFailed(state, fact);
    case 'forkMessages':
      return copyFailed(state, fact);
    case 'checkBlob':
      return blobChecked(state, fact);
    case 'followRun':
      return followFailed(state, fact);
    default:
      return [];
  }
}

function canceled(state: RunState, fact: FactOf<'cancelled'>): readonly RunEvent[] {
  switch (fact.task.activity) {
    case 'loadAgent':
      return agentCanceled(state);
    case 'callModel':
      return modelCanceled(state, fact);
    case 'runTool':
      return callCanceled(state, fact);
    case 'runFunction':
      return isUndoTask(fact)
        ? undoFailed(state, { ...fact, failure: { message: 'canceled' } })
        : verificationCanceled(state, fact);
    case 'checkDecision':
      return uncheckedDecision(state, fact, 'the check was canceled');
    case 'retrieveDocuments':
      return retrievalCanceled(state, fact);
    case 'rememberTurn':
      return remembered();
    case 'archiveMessages':
      return archiveCanceled(state, fact);
    case 'forkMessages':
      return copyCanceled(state, fact);
    case 'checkBlob':
      return checkCanceled(state, fact);
    case 'followRun':
      return followFailed(state, { ...fact, failure: { message: 'canceled' } });
    default:
      return [];
  }
}

function isUndoTask({ task }: Pick<FactOf<'completed'>, 'task'>): boolean {
  return isUndo({ name: toWork(task)?.name ?? '' });
}

/** Returns the id of the request that a task is about. */
function requestIn({ task: { input } }: Pick<FactOf<'completed'>, 'task'>): string {
  const request = isObject(input) ? input['request'] : undefined;
  return isObject(request) ? textField(request, 'id') : '';
}

function checkedDecision(state: RunState, fact: FactOf<'completed'>): readonly RunEvent[] {
  const { result, at, task } = fact;
  const name = toWork(task)?.name ?? '';
  if (!isCheckedDecision(result)) return [];
  return decisionChecked(state, { name, request: requestIn(fact), result, at });
}

/**
 * Returns the events of a decision that cannot be checked: it has no effect, and the request stays
 * open.
 */
function uncheckedDecision(
  state: RunState,
  { task, at }: Pick<FactOf<'failed'>, 'task' | 'at'>,
  why: string,
): readonly RunEvent[] {
  const message = `the decision could not be checked: ${why}`;
  const name = toWork(task)?.name ?? '';
  const result = { ok: false, message } as const;
  return decisionChecked(state, { name, request: requestIn({ task }), result, at });
}

/** An activity was scheduled, or the run of a called agent was started. */
function begin(state: RunState, { task }: FactOf<'scheduled'>): readonly RunEvent[] {
  const place = toWork(task);
  if (place === null) return [];
  const { name, as } = place;
  const { block, resumed: _, startAt: __, ...before }: Partial<Work> = findWork(state, name) ?? {};
  const call = callOfWork(state, name);
  const grant = before.approved || call === undefined ? undefined : grantFor(state, call);
  const cut = isObject(task.input) ? task.input['compact'] : undefined;
  const work: Work = {
    ...before,
    name,
    // An attempt shows that the work is no longer blocked; a probe does not.
    ...(as !== 'attempt' && block && { block }),
    ...(typeof cut === 'number' && { cut }),
    ...(grant && { grant: grant.id }),
    ...childOf(state, task),
    ...(name === WORK.archive && isAtEnd(state) && { last: true as const }),
    phase: 'in-flight',
    as,
  };
  return [{ type: 'work-changed', work }];
}

/** The next visit of a node that continues its conversation needs the run of this one. */
function childOf(state: RunState, { activity, input }: Task): Pick<Work, 'child'> {
  const node = currentNode(state);
  if (activity !== 'agent' || node?.kind !== 'agent' || !node.continues) return {};
  return { child: isObject(input) ? textField(input, 'run') : '' };
}

function isAtEnd(state: RunState): boolean {
  return nextAction(state).type === 'finish';
}
