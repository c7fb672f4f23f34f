import { actorOf } from '../core/input/turn-context.js';
import { askingWork } from '../core/requests/open-requests.js';
import { type PlanProgress, planProgress } from '../core/run/details.js';
import { nextAction } from '../core/run/next-action.js';
import type { GraphState, RunState } from '../core/state/state.js';
import {
  type CallProgress,
  itemOfCall,
  itemProgress,
  nodeOfCall,
} from '../core/state/turn-definition.js';
import { WORK, callOfWork, withoutWork } from '../core/state/work.js';
import { isReadsResult } from '../core/guards/recorded.js';
import type { Message } from '../core/transcript/messages.js';
import { findCall } from '../core/transcript/transcript.js';
import type { DurableStep } from './durable-steps.js';
import { withGraphSteps } from './graph-steps.js';
import type { HistoryEvent } from './history-event.js';
import { endOfRun } from './pending-work.js';
import {
  type BlockedSince,
  type Projection,
  type Projector,
  createProjector,
  repliesIn,
} from './projection.js';
import { carriedState, readBegun } from './reader/run-view.js';

/** The messages and turns of a segment that have been emitted. */
interface MessageProgress {
  /** Number of the next message. */
  readonly next: number;
  readonly turn: number;
  /** Number of turns that have ended in this segment. */
  readonly ended: number;
}

/** Returns new messages as steps, with the starts and ends of turns in between. */
function messageSteps(
  {
    messages,
    turns,
    ...noted
  }: Pick<Projection, 'messages' | 'turns' | 'usageByMessage' | 'retriedByMessage'>,
  before: MessageProgress,
): { readonly steps: readonly DurableStep[]; readonly progress: MessageProgress } {
  const fresh = messages.filter(({ n }) => n >= before.next);
  const ends = turns.slice(before.ended);
  const touched = [...new Set([...fresh, ...ends].map(({ turn }) => turn))];
  const steps = touched
    .toSorted((one, other) => one - other)
    .flatMap((turn): readonly DurableStep[] => [
      ...(turn > before.turn ? [{ type: 'turn-begun', turn } as const] : []),
      ...fresh
        .filter((message) => message.turn === turn)
        .flatMap((message) => toSteps(message, { messages, ...noted })),
      ...ends
        .filter((end) => end.turn === turn)
        .map(({ outcome }) => ({ type: 'turn-ended', turn, outcome }) as const),
    ]);
  return {
    steps,
    progress: {
      next: (fresh.at(-1)?.n ?? before.next - 1) + 1,
      turn: Math.max(before.turn, ...touched),
      ended: before.ended + ends.length,
    },
  };
}

function toSteps(
  message: Message,
  {
    messages,
    usageByMessage,
    retriedByMessage,
  }: Pick<Projection, 'messages' | 'usageByMessage' | 'retriedByMessage'>,
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
    case 'assistant':
      if (message.supplied || message.origin) return [{ type: 'message-added', message }];
      return message.side
        ? [
            {
              type: 'answer-refused',
              message,
              problem: findProblem(message.n, messages),
              ...usage,
              ...retried,
            },
          ]
        : [{ type: 'model-replied', message, ...usage, ...retried }];
    case 'tool':
      return [
        {
          type: 'call-finished',
          tool: findCall(message.callId, messages)?.name ?? '',
          message,
          ...retried,
        },
      ];
  }
}

/** Returns the message to the model about a refused answer, which directly follows the answer. */
function findProblem(answer: number, messages: readonly Message[]): string {
  return messages.find(({ n }) => n === answer + 1)?.text ?? '';
}

/** Receives the events of one segment in order, and returns the steps that each one adds. */
type StepEmitter = (event: HistoryEvent) => readonly DurableStep[];

/** The state of the emitter after the last event. */
interface Emitted extends MessageProgress {
  readonly blocked: ReadonlyMap<string, BlockedSince>;
  /** Ids of the open requests. */
  readonly requests: readonly string[];
  readonly paused: boolean;
  readonly wait: WaitBegun | null;
  /** The run's last position in its graph; undefined for a run of an agent. */
  readonly graph: GraphState | undefined;
  readonly plan: PlanProgress | null;
  /** The progress of the items of an `each`; null at any other node. */
  readonly items: CallProgress | null;
}

type WaitBegun = Extract<DurableStep, { type: 'wait-begun' }>;

const NOTHING: Emitted = {
  next: 0,
  turn: 0,
  ended: 0,
  blocked: new Map(),
  requests: [],
  paused: false,
  wait: null,
  graph: undefined,
  plan: null,
  items: null,
};

/**
 * Creates the emitter of a segment: it turns each event into steps, based on the changes in the
 * projected run. It is a pure function of the events, so every reader of a segment gets the same
 * steps.
 */
export function createStepEmitter(runId: string): StepEmitter {
  const projector = createProjector();
  const begunCalls = new Set<string>();
  const inline = new Set<string>();
  let emitted = NOTHING;
  return (event) => {
    const carriedIn = event.type === 'started' ? (readBegun(event)?.before?.state ?? null) : null;
    if (carriedIn !== null) emitted = emittedIn(carriedIn);
    const replies = replySteps(event, projector);
    projector.push(event);
    const view = projector.processed();
    const carriedOut = event.type === 'ended' ? carriedState(event.carried) : null;
    for (const id of inlineIn(event)) inline.add(id);
    const messages = messageSteps(view, emitted);
    const before = emitted;
    emitted = {
      ...(carriedOut === null ? emittedBy(view) : emittedIn(carriedOut)),
      ...messages.progress,
    };
    return [
      ...startSteps(event, view, { carriedIn, runId }),
      ...unblockedSteps(before, emitted, view),
      ...closedSteps(before.requests, view),
      ...replies,
      ...itemSteps(before.items, emitted.items),
      ...withGraphSteps(withInlineBegins(messages.steps, view, { inline, begunCalls }), before, {
        graph: (view.state ?? carriedIn)?.graph,
        plan: emitted.plan,
        state: view.state ?? carriedIn,
        visits: view.visits,
      }),
      ...callSteps(event, view, begunCalls),
      ...raisedSteps(before.requests, view.ended === null ? view.state : null),
      ...changeSteps(before, emitted, view),
    ];
  };
}

/** Returns the step for items that have ended while their node goes on. */
function itemSteps(before: CallProgress | null, now: CallProgress | null): readonly DurableStep[] {
  if (now === null) return [];
  // A new visit begins again.
  const goesOn = before?.node === now.node && before.done <= now.done;
  return now.done === (goesOn ? before.done : 0) ? [] : [{ type: 'items-ended', ...now }];
}

/** Returns the replies of models to the function of a node, when its activity has ended. */
function replySteps(event: HistoryEvent, projector: Projector): readonly DurableStep[] {
  const replies = repliesIn(event);
  if (event.type !== 'completed' || replies.length === 0) return [];
  const { inFlight, state } = projector.processed();
  const call = inFlight.get(event.scheduled)?.call;
  const node = call && nodeOfCall(call);
  if (!node) return [];
  const item = state && itemOfCall(state.config.definition, call);
  const place = { node, ...(item !== null && { item }) };
  return replies.map((reply) => ({ type: 'node-replied', ...place, ...reply }));
}

function emittedBy({ state, blocked, ended }: Projection): Emitted {
  if (state === null) return { ...NOTHING, blocked };
  const isIdle = blocked.size === 0 && ended === null;
  const emitted = emittedIn(state);
  return { ...emitted, blocked, wait: isIdle ? emitted.wait : null };
}

function emittedIn(state: RunState): Emitted {
  const { transcript, turn, paused } = state;
  const progress = { next: transcript.next, turn: turn.number, ended: 0 };
  return {
    ...NOTHING,
    ...progress,
    requests: requestIds(state),
    paused,
    wait: waitIn(state),
    graph: state.graph,
    plan: planProgress(state),
    items: itemProgress(state),
  };
}

function waitIn(state: RunState): WaitBegun | null {
  // For a reader, a wait continues in a new segment and while messages are being archived.
  const action = nextAction(withoutWork(state, WORK.archive));
  if (action.type === 'await-message') return { type: 'wait-begun', for: 'message' };
  if (action.type !== 'await-time') return null;
  return { type: 'wait-begun', for: 'time', until: action.until };
}

function startSteps(
  event: HistoryEvent,
  { input }: Projection,
  { carriedIn, runId }: { carriedIn: RunState | null; runId: string },
): readonly DurableStep[] {
  if (event.type !== 'started') return [];
  if (carriedIn !== null) return [{ type: 'segment-begun', segment: carriedIn.segments, runId }];
  return [{ type: 'run-started', agent: input?.agent ?? '', open: input?.open === true }];
}

/** Returns the ids of the calls that a workflow task has executed itself. */
function inlineIn(event: HistoryEvent): readonly string[] {
  if (event.type !== 'local' || !isReadsResult(event.result)) return [];
  return event.result.reads.flatMap(({ call, result }) => (result === undefined ? [] : [call]));
}

/** Adds the beginnings of inline calls, which the history shows together with their results. */
function withInlineBegins(
  steps: readonly DurableStep[],
  { messages }: Pick<Projection, 'messages'>,
  { inline, begunCalls }: Readonly<Record<'inline' | 'begunCalls', Set<string>>>,
): readonly DurableStep[] {
  if (inline.size === 0) return steps;
  return steps.flatMap((step): readonly DurableStep[] => {
    if (step.type !== 'call-finished') return [step];
    const { callId: id, turn } = step.message;
    const call = inline.has(id) && !begunCalls.has(id) ? findCall(id, messages) : undefined;
    if (call === undefined) return [step];
    begunCalls.add(id);
    return [{ type: 'call-begun', turn, call }, step];
  });
}

/** Activities that refer to a call but do not execute it. */
const NO_EXECUTION: readonly string[] = ['runFunction', 'checkDecision'];

/** Emits the start of a call once: the probe of a blocked call is not another start. */
function callSteps(
  event: HistoryEvent,
  { state, inFlight }: Projection,
  begunCalls: Set<string>,
): readonly DurableStep[] {
  const work = inFlight.get(event.id);
  if (!work?.call || NO_EXECUTION.includes(work.activity)) return [];
  // A node's work is a separate step.
  if (nodeOfCall(work.call) !== null) return [];
  if (begunCalls.has(work.call.id)) return [];
  begunCalls.add(work.call.id);
  return [{ type: 'call-begun', turn: state?.turn.number ?? 0, call: work.call }];
}

/**
 * Returns the steps for unblocked work; none for a run that has ended, because its end states the
 * block.
 */
function unblockedSteps(
  before: Emitted,
  now: Emitted,
  { ended }: Projection,
): readonly DurableStep[] {
  if (ended !== null) return [];
  const unblocked = [...before.blocked.keys()].filter((on) => !now.blocked.has(on));
  return unblocked.map((on) => ({ type: 'work-unblocked', on }));
}

function changeSteps(before: Emitted, now: Emitted, view: Projection): readonly DurableStep[] {
  const end = endOfRun({ view, terminatedWhy: '' });
  if (end !== null) return [{ type: 'run-ended', ...end }];
  const blocked = [...now.blocked].filter(([on, { reason }]) => {
    return before.blocked.get(on)?.reason !== reason;
  });
  const isNewWait = JSON.stringify(now.wait) !== JSON.stringify(before.wait);
  return [
    ...blocked.map(([on, { reason, message }]) => {
      return { type: 'work-blocked', on, reason, message } as const;
    }),
    ...(now.paused && !before.paused ? [{ type: 'run-paused' } as const] : []),
    ...(before.paused && !now.paused ? [{ type: 'run-resumed' } as const] : []),
    ...(now.wait !== null && isNewWait ? [now.wait] : []),
  ];
}

/** Returns the ids of the open requests of a state. */
function requestIds(state: RunState): readonly string[] {
  return askingWork(state).map(({ request }) => request.id);
}

/** Returns a step for each request that was open before and no longer is. */
function closedSteps(
  before: readonly string[],
  { state, decisions }: Pick<Projection, 'state' | 'decisions'>,
): readonly DurableStep[] {
  if (before.length === 0 || state === null) return [];
  const open = requestIds(state);
  return before
    .filter((id) => !open.includes(id))
    .map((id): DurableStep => {
      // The state remembers fewer decisions than one update may have.
      const made = decisions.findLast(
        ({ decision: { request, refused } }) => request === id && refused === undefined,
      );
      const { as = null, ...who } = made?.decision ?? {};
      return { type: 'request-closed', request: id, as, ...actorOf(who) };
    });
}

/** Returns a step for each request that is newly open. */
function raisedSteps(before: readonly string[], state: RunState | null): readonly DurableStep[] {
  if (state === null) return [];
  return askingWork(state)
    .filter(({ request }) => !before.includes(request.id))
    .map(({ name, request: { id, kind, why } }): DurableStep => {
      const call = callOfWork(state, name)?.id;
      return {
        type: 'request-raised',
        request: id,
        kind,
        ...(call !== undefined && { call }),
        why,
      };
    });
}
