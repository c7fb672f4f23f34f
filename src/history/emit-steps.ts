import { isReadsResult } from '../core/guards/recorded.js';
import { nextAction } from '../core/run/next-action.js';
import { itemOfCall, nodeOfCall } from '../core/state/turn-definition.js';
import { WORK, withoutWork, callOfWork } from '../core/state/work.js';
import { findCall } from '../core/transcript/transcript.js';
import type { DurableStep } from './durable-steps.js';
import { withProgress, isOfNode, nodeSteps } from './graph-steps.js';
import type { HistoryEvent } from './history-event.js';
import { endOfRun } from './pending-work.js';
import { type BlockedSince, type Projection, createProjector, repliesIn } from './projection.js';
import { type Change, type States, freshMessages } from './reader/run-view.js';
import { actorOf } from '../core/input/turn-context.js';
import { askingWork } from '../core/requests/open-requests.js';
import type { RunEvent } from '../core/run/events.js';
import type { RunState } from '../core/state/state.js';
import type { Message } from '../core/transcript/messages.js';

/** Receives the events of one segment in order, and returns the steps that each one adds. */
interface StepEmitter {
  (event: HistoryEvent): readonly DurableStep[];
  /** Returns the run, including events that the workflow has yet to process. */
  view(): Projection;
}

/** What the emitter has stated last of what no event of the run states. */
interface Stated {
  readonly blocked: ReadonlyMap<string, BlockedSince>;
  readonly wait: WaitBegun | null;
}

type WaitBegun = Extract<DurableStep, { type: 'wait-begun' }>;

/**
 * Creates the emitter of a segment. The steps of an event of the history are those that the run's
 * events in it mean, with what only the history states around them. It is a pure function of the
 * events, so every reader of a segment gets the same steps.
 */
export function createStepEmitter(runId: string): StepEmitter {
  const changes: Change[] = [];
  const projector = createProjector((change) => changes.push(change));
  const begun: BegunCalls = { inline: new Set(), all: new Set() };
  let stated: Stated = { blocked: new Map(), wait: null };
  const emit = (event: HistoryEvent): readonly DurableStep[] => {
    const replies = replySteps(event, projector.processed());
    changes.length = 0;
    projector.push(event);
    const run = projector.processed();
    for (const id of inlineIn(event)) begun.inline.add(id);
    const before = stated;
    stated = { blocked: run.blocked, wait: waitIn(run) };
    const meant = changes.flatMap((change) => MEANINGS[change.event.type](change, run));
    return [
      ...startSteps(event, run, runId),
      ...unblockedSteps(before, run),
      ...replies,
      ...withProgress(withInlineBegins(meant, run, begun), changes),
      ...callSteps(event, run, begun),
      ...(event.type === 'started' ? blockedSteps(before, run) : lastSteps(before, stated, run)),
    ];
  };
  return Object.assign(emit, { view: () => projector.view() });
}

/** Returns the replies of models to the function of a node, when its activity has ended. */
function replySteps(event: HistoryEvent, { inFlight, state }: Projection): readonly DurableStep[] {
  const replies = repliesIn(event);
  if (event.type !== 'completed' || replies.length === 0) return [];
  const call = inFlight.get(event.scheduled)?.call;
  const node = call && nodeOfCall(call);
  if (!node) return [];
  const item = state && itemOfCall(state.config.definition, call);
  const place = { node, ...(item !== null && { item }) };
  return replies.map((reply) => ({ type: 'node-replied', ...place, ...reply }));
}

/** Returns what a run waits for, without blocked work. */
function waitIn({ state, blocked, ended }: Projection): WaitBegun | null {
  if (state === null || blocked.size > 0 || (ended && ended.how !== 'continued')) return null;
  // For a reader, a wait continues in a new segment and while messages are being archived.
  const action = nextAction(withoutWork(state, WORK.archive));
  if (action.type === 'await-message') return { type: 'wait-begun', for: 'message' };
  if (action.type !== 'await-time') return null;
  return { type: 'wait-begun', for: 'time', until: action.until };
}

function startSteps(
  event: HistoryEvent,
  { input, state }: Projection,
  runId: string,
): readonly DurableStep[] {
  if (event.type !== 'started') return [];
  // Only an earlier segment passes on a state.
  if (state !== null) return [{ type: 'segment-begun', segment: state.segments, runId }];
  return [{ type: 'run-started', agent: input?.agent ?? '', open: input?.open === true }];
}

/** The ids of the calls that have begun. */
interface BegunCalls {
  /** Those that a workflow task has executed itself. */
  readonly inline: Set<string>;
  /** Those whose beginning was emitted. */
  readonly all: Set<string>;
}

/** Returns the ids of the calls that a workflow task has executed itself. */
function inlineIn(event: HistoryEvent): readonly string[] {
  if (event.type !== 'local' || !isReadsResult(event.result)) return [];
  return event.result.reads.flatMap(({ call, result }) => (result === undefined ? [] : [call]));
}

/** Adds the beginnings of inline calls, which the history shows together with their results. */
function withInlineBegins(
  steps: readonly DurableStep[],
  { messages }: Projection,
  { inline, all }: BegunCalls,
): readonly DurableStep[] {
  if (inline.size === 0) return steps;
  return steps.flatMap((step): readonly DurableStep[] => {
    if (step.type !== 'call-finished') return [step];
    const { callId: id, turn } = step.message;
    const call = inline.has(id) && !all.has(id) ? findCall(id, messages) : undefined;
    if (call === undefined) return [step];
    all.add(id);
    return [{ type: 'call-begun', turn, call }, step];
  });
}

/** Activities that refer to a call but do not execute it. */
const NO_EXECUTION: readonly string[] = ['runFunction', 'checkDecision'];

/** Emits the start of a call once: the probe of a blocked call is not another start. */
function callSteps(
  event: HistoryEvent,
  { state, inFlight }: Projection,
  { all }: BegunCalls,
): readonly DurableStep[] {
  const work = inFlight.get(event.id);
  if (!work?.call || NO_EXECUTION.includes(work.activity)) return [];
  // A node's work is a separate step.
  if (nodeOfCall(work.call) !== null) return [];
  if (all.has(work.call.id)) return [];
  all.add(work.call.id);
  return [{ type: 'call-begun', turn: state?.turn.number ?? 0, call: work.call }];
}

/** The end of a run also ends its blocks, without a step. */
function unblockedSteps(before: Stated, { blocked, ended }: Projection): readonly DurableStep[] {
  if (ended !== null) return [];
  const unblocked = [...before.blocked.keys()].filter((on) => !blocked.has(on));
  return unblocked.map((on) => ({ type: 'work-unblocked', on }));
}

function blockedSteps(before: Stated, { blocked }: Projection): readonly DurableStep[] {
  return [...blocked]
    .filter(([on, { reason }]) => before.blocked.get(on)?.reason !== reason)
    .map(([on, { reason, message }]) => ({ type: 'work-blocked', on, reason, message }));
}

/** Returns the end of the run, or why it does not go on at once. */
function lastSteps(before: Stated, { wait }: Stated, run: Projection): readonly DurableStep[] {
  const end = endOfRun({ view: run, terminatedWhy: '' });
  if (end !== null) return [{ type: 'run-ended', ...end }];
  const isNew = wait !== null && JSON.stringify(wait) !== JSON.stringify(before.wait);
  return [...blockedSteps(before, run), ...(isNew ? [wait] : [])];
}

/** Returns the steps that a run event means. `run`: the run after the event of its history. */
type Meaning = (change: States, run: Projection) => readonly DurableStep[];

/** The event means no step of its own. */
const NONE: Meaning = () => [];

/** A request is closed when its work no longer asks: by a decision, or because its reason is gone. */
const closed: Meaning = ({ before, after }, { decisions }) => {
  if (before.work === after.work) return [];
  const open = requestIds(after);
  return requestIds(before)
    .filter((id) => !open.includes(id))
    .map((request): DurableStep => {
      const made = decisions.findLast(
        ({ decision }) => decision.request === request && decision.refused === undefined,
      );
      const { as = null, ...who } = made?.decision ?? {};
      return { type: 'request-closed', request, as, ...actorOf(who) };
    });
};

/**
 * The turn goes on: messages join the transcript, and a graph's run leaves and enters nodes. The last
 * node of a turn ends before the turn's answer, and a node begins before its message to the model.
 */
export const advances: Meaning = (change, run) => {
  const messages = freshMessages(change).flatMap((message) => toSteps(message, run));
  const { ended, begun } = nodeSteps(change, run);
  const own = messages.findIndex((step) => isOfNode(step, change.after.graph?.at?.node));
  const until = own < 0 ? messages.length : own;
  const first = [...closed(change, run), ...messages.slice(0, until)];
  return [...first, ...ended, ...begun, ...messages.slice(until)];
};

const turnBegun: Meaning = (change, run) => [
  { type: 'turn-begun', turn: change.after.turn.number },
  ...advances(change, run),
];

/** The messages that join an ended turn belong to it. */
const turnEnded: Meaning = (change, run) => {
  const { number: turn, phase } = change.before.turn;
  const { outcome } = phase.type === 'over' ? phase : {};
  return [
    ...advances(change, run),
    ...(outcome ? [{ type: 'turn-ended', turn, outcome } as const] : []),
  ];
};

const raised: Meaning = (change, run) => {
  const { after } = change;
  const work = askingWork(after).at(-1);
  if (work === undefined) return [];
  const { id: request, kind, why } = work.request;
  const call = callOfWork(after, work.name)?.id;
  const about = { request, kind, ...(call !== undefined && { call }), why };
  return [...closed(change, run), { type: 'request-raised', ...about }];
};

const pauseChanged: Meaning = ({ before, after }) => {
  if (before.paused === after.paused) return [];
  return [{ type: after.paused ? 'run-paused' : 'run-resumed' }];
};

const undoChanged: Meaning = ({ before, after }) =>
  (after.kept ?? []).flatMap(({ call: { id, name }, state, message }): readonly DurableStep[] => {
    const known = before.kept?.find(({ call }) => call.id === id);
    if (state === undefined || state === known?.state) return [];
    // The message of an earlier try stays.
    const why = (state === 'failed' || state === 'denied') && message !== undefined && { message };
    return [{ type: 'undo-changed', call: id, tool: name, state, ...why }];
  });

/**
 * The steps that each event of a run means. Blocked work, waits, and the beginnings of calls are not
 * here, because no event of the run states them.
 */
export const MEANINGS: Readonly<Record<RunEvent['type'], Meaning>> = {
  'turn-begun': turnBegun,
  'node-begun': advances,
  'conversation-recorded': NONE,
  'messages-joined': advances,
  'documents-retrieved': advances,
  'retrieval-failed': advances,
  'turn-remembered': NONE,
  'values-lost': NONE,
  'model-replied': advances,
  'model-failed': advances,
  'messages-refused': NONE,
  'tokens-used': NONE,
  'usage-spent': NONE,
  'limit-hit': NONE,
  'call-finished': advances,
  'time-passed': advances,
  'interruption-requested': NONE,
  'turn-interrupted': advances,
  'closing-begun': advances,
  'turn-ended-at-limit': advances,
  'transcript-compacted': advances,
  'turn-recorded': turnEnded,
  'call-edited': NONE,
  'verdict-recorded': NONE,
  'undo-parsed': NONE,
  'limit-kept': NONE,
  'limit-raised': NONE,
  'undo-enabled': NONE,
  'message-received': NONE,
  'message-refused': NONE,
  'decision-recorded': NONE,
  'end-requested': NONE,
  'pause-changed': pauseChanged,
  'limits-set': NONE,
  'limits-requested': NONE,
  'request-raised': raised,
  'decision-proposed': NONE,
  'request-notified': NONE,
  'grant-added': NONE,
  'grant-revoked': NONE,
  'undo-changed': undoChanged,
  'tool-accepted': NONE,
  'agent-loaded': NONE,
  'run-forked': NONE,
  'agent-refreshed': NONE,
  'messages-archived': NONE,
  'segment-kept': NONE,
  'segment-begun': NONE,
  'inline-stopped': NONE,
  'work-changed': closed,
  'work-ended': closed,
};

function requestIds(state: RunState): readonly string[] {
  return askingWork(state).map(({ request }) => request.id);
}

function toSteps(
  message: Message,
  { messages, usageByMessage, retriedByMessage }: Projection,
): readonly DurableStep[] {
  const cost = usageByMessage.get(message.n);
  const usage = cost && { usage: cost };
  const attempts = retriedByMessage.get(message.n);
  const retried = attempts && { retried: attempts };
  switch (message.role) {
    case 'user':
      // The message that explains a refused answer is part of the step of that answer.
      if (message.side) return [];
      return message.compacts === undefined
        ? [{ type: 'message-added', message }]
        : [{ type: 'transcript-compacted', message, ...usage }];
    case 'assistant': {
      if (message.supplied || message.origin) return [{ type: 'message-added', message }];
      if (!message.side) return [{ type: 'model-replied', message, ...usage, ...retried }];
      // The message to the model directly follows the answer.
      const problem = messages.find(({ n }) => n === message.n + 1)?.text ?? '';
      return [{ type: 'answer-refused', message, problem, ...usage, ...retried }];
    }
    case 'tool': {
      const tool = findCall(message.callId, messages)?.name ?? '';
      return [{ type: 'call-finished', tool, message, ...retried }];
    }
  }
}
