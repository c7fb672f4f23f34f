import { isLoaded } from '../rules/limits.js';
import { acceptSignal } from '../run/ask.js';
import type { Fact, FactOf, RunEvent, Task, Completed, EndOf } from '../run/events.js';
import { nextAction } from '../run/next-action.js';
import { grantFor } from '../state/consent.js';
import { type RunState, keepsEarlierMeaning } from '../state/state.js';
import { currentNode } from '../state/turn-definition.js';
import { WORK, type Work, callOfWork, findWork, type Flight, UNDO, isUndo } from '../state/work.js';
import { isObject, textField } from '../text/json.js';
import {
  isArchiveResult,
  isCheckedDecision,
  isFollowResult,
  isForked,
  isFunctionResult,
  isReadsResult,
  isReceipt,
  isReply,
  isRetrieval,
  isRunConfig,
  isToolResult,
  misfitMessage,
} from '../guards/recorded.js';
import type { Activities } from '../run/contract.js';
import { nameInCalledId } from '../transcript/call-result.js';
import { passedDeadline, callCanceled, callFailed, callReturned } from './calls.js';
import {
  childEnded,
  childExisted,
  messageReceived,
  paused,
  resumed,
  updateEvents,
  followFailed,
  followed,
} from './people.js';
import {
  agentCanceled,
  agentFailed,
  agentLoaded,
  archiveCanceled,
  archiveFailed,
  archived,
  blobChecked,
  checkCanceled,
  checkedDecision,
  copied,
  copyCanceled,
  copyFailed,
  modelCanceled,
  modelFailed,
  modelReplied,
  notRemembered,
  remembered,
  requestIn,
  retrievalCanceled,
  retrievalFailed,
  retrieved,
  uncheckedDecision,
  verificationFailed,
  verified,
} from './activities.js';
import { probeCanceled } from './block.js';
import { undoFailed, undone } from './decide.js';
import { readsFailed, readsReturned } from './inline-calls.js';

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
    case 'failed':
    case 'cancelled':
      return endEvents(state, fact);
    case 'child-ended':
      return childEnded(state, fact);
    case 'child-existed':
      return childExisted(state, fact);
    case 'segment-kept':
      return isLoaded(state) ? [{ type: 'segment-kept', at: fact.at }] : [];
  }
}

/** An activity was scheduled, or the run of a called agent was started. */
function begin(state: RunState, { task }: FactOf<'scheduled'>): readonly RunEvent[] {
  const place = workPlace(task);
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

/** The work that an activity does, and its role there. */
interface Place {
  readonly name: string;
  readonly as: Flight;
}

type Fields = Readonly<Record<string, unknown>>;
type Events = readonly RunEvent[];

/** All that distinguishes one activity from another for the run that schedules it. */
interface ActivityRules<R> {
  /** The work that it does, from its input; null for an activity of no work. */
  readonly work: (input: Fields) => Place | null;
  /** Whether a recorded result has its form. An operator may complete it with any value. */
  readonly guard: (value: unknown) => value is R;
  readonly completed: (state: RunState, fact: Completed<R>) => Events;
  readonly failed: (state: RunState, fact: EndOf<'failed'>) => Events;
  readonly canceled: (state: RunState, fact: EndOf<'cancelled'>) => Events;
  /** Whether the run waits for its end after it has canceled it. */
  readonly awaited: boolean;
}

type Name = keyof Activities;
type ResultOf<N extends Name> = Awaited<ReturnType<Activities[N]>>;

/** The rules of each activity. One that is not here does not compile. */
const ACTIVITIES: { readonly [N in Name]: ActivityRules<ResultOf<N>> } = {
  loadAgent: {
    work: attemptAt(WORK.agent),
    guard: isRunConfig,
    completed: agentLoaded,
    failed: agentFailed,
    canceled: agentCanceled,
    awaited: false,
  },
  callModel: {
    work: attemptAt(WORK.model),
    guard: isReply,
    completed: modelReplied,
    failed: modelFailed,
    canceled: modelCanceled,
    awaited: true,
  },
  runTool: {
    work: (input) => ({
      name: callId(input),
      as: input['find'] === true ? 'find' : attemptOrProbe(input),
    }),
    guard: isToolResult,
    completed: callReturned,
    failed: callFailed,
    canceled: callCanceled,
    awaited: true,
  },
  // It begins and ends within one workflow task, so it is never in flight.
  runReads: {
    work: () => null,
    guard: isReadsResult,
    completed: readsReturned,
    failed: readsFailed,
    canceled: readsFailed,
    awaited: true,
  },
  runFunction: {
    work: (input) =>
      input['function'] === 'undo'
        ? { name: `${UNDO}${callId(input)}`, as: 'attempt' }
        : { name: callId(input), as: 'verify' },
    guard: isFunctionResult,
    completed: (state, fact) => (isUndoing(fact) ? undone(state, fact) : verified(state, fact)),
    failed: (state, fact) =>
      isUndoing(fact) ? undoFailed(state, fact) : verificationFailed(state, fact),
    canceled: (state, fact) =>
      isUndoing(fact) ? undoFailed(state, asFailed(fact)) : probeCanceled(state, fact),
    awaited: true,
  },
  retrieveDocuments: {
    work: attemptAt(WORK.retrieve),
    guard: isRetrieval,
    completed: retrieved,
    failed: retrievalFailed,
    canceled: retrievalCanceled,
    awaited: true,
  },
  rememberTurn: {
    work: attemptAt(WORK.remember),
    guard: isAnything,
    completed: () => remembered(),
    failed: (_state, fact) => notRemembered(fact),
    canceled: () => remembered(),
    awaited: true,
  },
  archiveMessages: {
    work: attemptAt(WORK.archive),
    guard: isArchiveResult,
    completed: archived,
    failed: archiveFailed,
    canceled: archiveCanceled,
    awaited: false,
  },
  forkMessages: {
    work: attemptAt(WORK.fork),
    guard: isForked,
    completed: copied,
    failed: copyFailed,
    canceled: copyCanceled,
    awaited: false,
  },
  checkBlob: {
    work: (input) => ({ name: textField(input, 'work'), as: 'check' }),
    guard: isAnything,
    completed: blobChecked,
    failed: blobChecked,
    canceled: checkCanceled,
    awaited: false,
  },
  checkDecision: {
    work: (input) => ({ name: textField(input, 'work'), as: 'decide' }),
    guard: isCheckedDecision,
    completed: checkedDecision,
    failed: (state, fact) => uncheckedDecision(state, fact, fact.failure.message),
    canceled: (state, fact) => uncheckedDecision(state, fact, 'the check was canceled'),
    awaited: false,
  },
  notifyRequest: {
    work: () => null,
    guard: isAnything,
    completed: (_state, fact) => [{ type: 'request-notified', request: requestIn(fact) }],
    failed: nothing,
    canceled: nothing,
    awaited: true,
  },
  // It sends a message of a program, which belongs to no run.
  askRun: {
    work: () => null,
    guard: isReceipt,
    completed: nothing,
    failed: nothing,
    canceled: nothing,
    awaited: true,
  },
  followRun: {
    work: (input) => ({ name: nameInCalledId(textField(input, 'run')), as: 'follow' }),
    guard: isFollowResult,
    completed: followed,
    failed: followFailed,
    canceled: (state, fact) => followFailed(state, asFailed(fact)),
    awaited: true,
  },
};

function nothing(): Events {
  return [];
}

/** For an activity whose result has no meaning. */
function isAnything(_value: unknown): _value is void {
  return true;
}

function attemptAt(name: string): (input: Fields) => Place {
  return (input) => ({ name, as: attemptOrProbe(input) });
}

function attemptOrProbe({ blocked }: Fields): 'attempt' | 'probe' {
  return blocked === undefined ? 'attempt' : 'probe';
}

function callId({ call }: Fields): string {
  return isObject(call) ? textField(call, 'id') : '';
}

function isUndoing({ work }: Pick<EndOf<'completed'>, 'work'>): boolean {
  return isUndo({ name: work });
}

function asFailed(
  fact: EndOf<'cancelled'>,
): EndOf<'cancelled'> & { readonly failure: { readonly message: string } } {
  return { ...fact, failure: { message: 'canceled' } };
}

function isKnown(activity: string): activity is Name {
  return Object.hasOwn(ACTIVITIES, activity);
}

/**
 * Returns the work to which a task belongs, and the task's role; null for a task that belongs to no
 * work. The run of a called agent is a task, too.
 */
function workPlace({ activity, input }: Task): Place | null {
  const given = isObject(input) ? input : {};
  if (activity === 'agent') return { name: textField(given, 'call'), as: 'child' };
  return isKnown(activity) ? ACTIVITIES[activity].work(given) : null;
}

/** Whether a recorded result has the form of this activity's results. */
export function fitsActivity(activity: string, value: unknown): boolean {
  return !isKnown(activity) || ACTIVITIES[activity].guard(value);
}

/** Whether a run waits for the end of this activity after it has canceled it. */
export function isAwaited(activity: string): boolean {
  return !isKnown(activity) || ACTIVITIES[activity].awaited;
}

/** Returns the events when an activity has ended. */
function endEvents(state: RunState, fact: FactOf<'completed' | 'failed' | 'cancelled'>): Events {
  const { activity } = fact.task;
  return isKnown(activity) ? eventsOf(activity, state, fact) : [];
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- ties the guard to the result
function eventsOf<N extends Name>(
  name: N,
  state: RunState,
  fact: FactOf<'completed' | 'failed' | 'cancelled'>,
): Events {
  const rules: ActivityRules<ResultOf<N>> = ACTIVITIES[name];
  const work = workPlace(fact.task)?.name ?? '';
  if (fact.type === 'cancelled') return rules.canceled(state, { ...fact, work });
  if (fact.type === 'failed') return rules.failed(state, { ...fact, work });
  const { result, task, at } = fact;
  if (rules.guard(result)) return rules.completed(state, { ...fact, result, work });
  // A malformed result counts as a failure.
  const message = misfitMessage(name, result);
  const details = [{ type: 'failed', reason: 'error', message }];
  const failure = { message, type: 'Failed', timedOut: false, details };
  return rules.failed(state, { type: 'failed', at, task, failure, work });
}
