import type { AgentDefinition } from '../core/definition/definition.js';
import { definitionShape } from '../core/guards/definition.js';
import { isReadsResult, isReply, isToolResult } from '../core/guards/recorded.js';
import { messageAnswer } from '../core/requests/answer-by-message.js';
import { openRequest, openRequests } from '../core/requests/open-requests.js';
import type { Ask } from '../core/input/inbox.js';
import type { RunInput } from '../core/input/input.js';
import { acceptSignal, askProblem } from '../core/run/ask.js';
import { getOutcome } from '../core/state/turn.js';
import { type Json, isObject, textField } from '../core/text/json.js';
import { decisionShape, isCall } from '../core/transcript/message-shapes.js';
import { type Message, parseCallId } from '../core/transcript/messages.js';
import { findCall } from '../core/transcript/transcript.js';
import type { Decision, Request } from '../core/transcript/request.js';
import type { HistoryEvent } from '../history/history-event.js';
import {
  type Projection,
  type Projector,
  createProjector,
  project,
} from '../history/projection.js';
import {
  type RecordedFact,
  type RecordedRequest,
  type RecordedRun,
  type TurnOutput,
  subjectOf,
} from './recording.js';

/** The events of a run, segment by segment, oldest first. */
export interface RunEvents {
  readonly id: string;
  readonly segments: readonly (readonly HistoryEvent[])[];
}

/**
 * Records one run from the events of all its segments. It is a pure function of them. Returns null if
 * no worker has begun the run.
 */
export function recordEvents({ id, segments }: RunEvents): RecordedRun | null {
  const views = segments.map((events) => project(events));
  const [first] = segments;
  const [started] = first ?? [];
  const last = views.at(-1);
  if (started?.type !== 'started' || last === undefined || last.state === null) return null;
  const messages = messagesIn(views);
  const undecided = new Map<string, RecordedRequest>();
  const facts = segments.flatMap((events) => factsIn(events, { messages, undecided }));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the workflow has accepted it
  const input = started.input as RunInput;
  const { price, window } = last.state.config;
  return {
    id,
    agent: input.agent,
    startedAt: started.at,
    endedAt: last.ended?.at ?? null,
    input,
    definitions: definitionsIn(segments, views),
    ...(price !== null && { price }),
    ...(window !== undefined && { window }),
    facts,
    messages,
    outcome: last.outcome,
    ...(last.ended === null && { lastTurn: getOutcome(last.state) }),
    outputs: views.flatMap((view) => outputsIn(view)),
    undecided: [...undecided.values()],
    spent: last.state.total,
  };
}

function outputsIn({ turns }: Projection): readonly TurnOutput[] {
  return turns.flatMap(({ turn, outcome: { output } }) =>
    output === null ? [] : [{ turn, output }],
  );
}

function messagesIn(views: readonly Projection[]): readonly Message[] {
  const byNumber = new Map(views.flatMap(({ messages }) => messages.map((one) => [one.n, one])));
  return [...byNumber.values()].toSorted((one, other) => one.n - other.n);
}

/** Returns the distinct definitions that the run has pinned, in their order. */
function definitionsIn(
  segments: readonly (readonly HistoryEvent[])[],
  views: readonly Projection[],
): readonly AgentDefinition[] {
  const loaded = segments.flat().flatMap((event): readonly unknown[] => {
    const result = event.type === 'local' || event.type === 'completed' ? event.result : undefined;
    return isObject(result) && 'definition' in result ? [result['definition']] : [];
  });
  const pinned = views.flatMap(({ state }) => (state === null ? [] : [state.config.definition]));
  const all = [...loaded, ...pinned].filter(isDefinition);
  return [...new Map(all.map((one) => [one.hash, one])).values()];
}

function isDefinition(value: unknown): value is AgentDefinition {
  return definitionShape(value, '') === null;
}

/** Updates and signals without an effect on the run: they only read. */
const READS = new Set(['outcome']);

/** The events that can remove a request without a decision. */
const ENDING: ReadonlySet<HistoryEvent['type']> = new Set([
  'timer-fired',
  'update',
  'signal',
  'cancel-requested',
]);

/** `undecided`: the requests that were open and not decided so far, by their ids. */
function factsIn(
  events: readonly HistoryEvent[],
  {
    messages,
    undecided,
  }: {
    readonly messages: readonly Message[];
    readonly undecided: Map<string, RecordedRequest>;
  },
): readonly RecordedFact[] {
  const scheduled = new Map<number, Extract<HistoryEvent, { type: 'scheduled' }>>();
  /** When the last attempt of each activity began on a worker, by the event that scheduled it. */
  const began = new Map<number, number>();
  const admitted = new Map<string, { readonly name: string; readonly input: unknown }>();
  const run = createProjector();
  const toFacts = (event: HistoryEvent): readonly RecordedFact[] => {
    const { at } = event;
    switch (event.type) {
      case 'scheduled':
        scheduled.set(event.id, event);
        return [];
      case 'attempted':
        began.set(event.scheduled, at);
        return [];
      case 'completed': {
        const activity = scheduled.get(event.scheduled);
        const tookMs = at - (began.get(event.scheduled) ?? at);
        return activity === undefined ? [] : [ended(activity, { at, tookMs }, event.result)];
      }
      case 'failed': {
        const activity = scheduled.get(event.scheduled);
        if (activity === undefined) return [];
        const { type, message } = event.failure;
        const { activity: name, input } = activity;
        const error = { type, message };
        return [{ at, type: 'failure', activity: name, input: toJson(input), error }];
      }
      case 'local':
        return inlineResults(event, messages);
      case 'update-admitted':
        admitted.set(event.updateId, event.request);
        return [];
      case 'update':
        return received({ run, undecided }, at, event.request ?? admitted.get(event.updateId));
      case 'signal':
        return received({ run, undecided }, at, event);
      case 'child-started':
        return [{ at, type: 'called', call: event.call, run: event.child }];
      case 'cancel-requested':
        return [{ at, type: 'cancel' }];
      default:
        return [];
    }
  };
  const noteOpen = (): void => {
    const { state } = run.view();
    const open = state === null ? [] : openRequests(state, '');
    for (const request of open) {
      // A decision is being checked.
      if (request.checking !== true) undecided.set(request.id, subjectOf(request));
    }
  };
  const all = events.flatMap((event) => {
    if (ENDING.has(event.type)) noteOpen();
    const facts = toFacts(event);
    run.push(event);
    return facts;
  });
  noteOpen();
  return all;
}

function ended(
  { activity, input }: Extract<HistoryEvent, { type: 'scheduled' }>,
  { at, tookMs }: { readonly at: number; readonly tookMs: number },
  result: unknown,
): RecordedFact {
  if (isObject(input) && isObject(result)) {
    const { turn, step, call, effect, compact } = input;
    const place = { at, turn: Number(turn ?? 0), step: Number(step ?? 0) };
    if (activity === 'callModel' && isReply(result)) {
      const summary = compact !== undefined && ({ summary: true } as const);
      return { ...place, type: 'reply', reply: toJson(result), tookMs, ...summary };
    }
    if (activity === 'runTool' && isCall(call) && isToolResult(result)) {
      const effectName = typeof effect === 'string' ? effect : '';
      return { ...place, type: 'result', call, effect: effectName, result: toJson(result) };
    }
  }
  return { at, type: 'activity', activity, input: toJson(input), result: toJson(result) };
}

/** Returns the results of calls that a workflow task has executed itself. */
function inlineResults(
  { at, result }: Extract<HistoryEvent, { type: 'local' }>,
  messages: readonly Message[],
): readonly RecordedFact[] {
  if (!isReadsResult(result)) return [];
  return result.reads.flatMap(({ call: id, result: read }): readonly RecordedFact[] => {
    const call = findCall(id, messages);
    if (call === undefined || read === undefined) return [];
    const place = { at, ...parseCallId(call) };
    return [{ ...place, type: 'result', call, effect: 'read', result: toJson(read) }];
  });
}

/** `run`: as it was just before. Removes from `undecided` what a message or a decision decides. */
function received(
  { run, undecided }: { readonly run: Projector; readonly undecided: Map<string, RecordedRequest> },
  at: number,
  request: { readonly name: string; readonly input: unknown } | undefined,
): readonly RecordedFact[] {
  if (request === undefined || READS.has(request.name)) return [];
  const { name, input } = request;
  if (name === 'ask' || name === 'message') {
    if (!isAsk(input) || (name === 'message' && isRefused(run, input, at))) return [];
    const decided = decidedBy(run, input);
    if (decided === undefined) return [{ at, type: 'message', message: input }];
    undecided.delete(decided.id);
    return [{ at, type: 'message', message: input, about: subjectOf(decided) }];
  }
  // The update takes one decision or a list.
  const decisions: readonly unknown[] = Array.isArray(input) ? input : [input];
  if (name === 'resolve' && decisions.every(isDecision)) {
    const { state } = run.view();
    return decisions.map((decision) => {
      const { request: id } = decision;
      undecided.delete(id);
      const open = state === null ? undefined : openRequest(state, { id, run: '' });
      const about = open === undefined ? {} : { about: subjectOf(open) };
      return { at, type: 'decision', decision, ...about };
    });
  }
  return [{ at, type: 'control', name, input: toJson(input) }];
}

/** Whether the run refuses a message that came by signal, which its history has nevertheless. */
function isRefused(run: Projector, message: Ask, at: number): boolean {
  const { state } = run.view();
  return state !== null && acceptSignal(state, message, at).event?.type === 'message-refused';
}

/** Returns the request that a message decides about. */
function decidedBy(run: Projector, message: Ask): Request | undefined {
  const { state } = run.view();
  if (state === null) return undefined;
  const answer = messageAnswer(state, message, { now: null, recorded: true });
  return answer.type === 'decides'
    ? openRequest(state, { id: answer.work.request.id, run: '' })
    : undefined;
}

function isAsk(value: unknown): value is Ask {
  return askProblem(value) === null;
}

function isDecision(value: unknown): value is Decision {
  return decisionShape(value, '') === null;
}

function toJson(value: unknown): Json {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it was decoded from JSON
  return (value ?? null) as Json;
}

/** Returns the ids of the runs that a run has called. */
export function calledRuns({ facts }: RecordedRun): readonly string[] {
  const called = facts.flatMap((fact) => {
    if (fact.type === 'called') return [fact.run];
    const isFollowed = fact.type === 'activity' && fact.activity === 'followRun';
    return isFollowed && isObject(fact.input) ? [textField(fact.input, 'run')] : [];
  });
  return [...new Set(called)].filter((id) => id !== '');
}
