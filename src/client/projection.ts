import { toolOf } from '../core/batch.js';
import {
  cancelledCall,
  failedCall,
  lostCall,
  lostMessage,
  refusedCall,
  resolvedCall,
  succeededCall,
  type Resolution,
} from '../core/call-results.js';
import type { CallResult } from '../core/calls.js';
import { parseProblem } from '../core/failure.js';
import { isProblem, parseRunInput } from '../core/input.js';
import { isObject, textOf } from '../core/json.js';
import type { ToolCall } from '../core/messages.js';
import { nextAction } from '../core/next-action.js';
import type { Outcome } from '../core/outcome.js';
import { reduce } from '../core/reduce.js';
import type { RecordedReply } from '../core/reply.js';
import { initialState, type RunConfig, type RunState } from '../core/state.js';
import type { Blocked } from '../core/status.js';
import type { FactFailure, HistoryFact } from './history-facts.js';

/** An activity that is scheduled and has not ended. */
export interface InFlight {
  readonly activity: string;
  readonly summary: string;
  readonly call: ToolCall | null;
  readonly at: number;
}

/** A run as its history tells it. */
export interface Projection {
  /** Null until the agent is loaded. */
  readonly state: RunState | null;
  readonly message: string;
  readonly inFlight: ReadonlyMap<number, InFlight>;
  /** Call id, or `model` → why it stands still. */
  readonly blocked: ReadonlyMap<string, Blocked>;
  readonly ended: Extract<HistoryFact, { type: 'ended' }> | null;
  readonly cancelRequested: boolean;
}

const NOTHING: Projection = {
  state: null,
  message: '',
  inFlight: new Map(),
  blocked: new Map(),
  ended: null,
  cancelRequested: false,
};

interface Work {
  state: RunState | null;
  message: string;
  readonly inFlight: Map<number, InFlight>;
  readonly blocked: Map<string, Blocked>;
  readonly results: Map<string, CallResult>;
  ended: Projection['ended'];
  cancelRequested: boolean;
}

/**
 * Retells a run from its history with the same reducer that the workflow uses, so it works while no
 * worker is up. It only reads: where a history holds something unknown, that is passed over.
 */
export function project(facts: Iterable<HistoryFact>): Projection {
  const work: Work = {
    ...NOTHING,
    inFlight: new Map(),
    blocked: new Map(),
    results: new Map(),
  };
  for (const fact of facts) take(work, fact);
  return work;
}

function take(work: Work, fact: HistoryFact): void {
  switch (fact.type) {
    case 'started': {
      const input = parseRunInput(fact.input);
      if (!isProblem(input)) work.message = input.message ?? '';
      return;
    }
    case 'local':
      return loaded(work, fact.result, fact.at);
    case 'scheduled':
      return scheduled(work, fact);
    case 'completed':
      return completed(work, fact);
    case 'failed':
      return failed(work, fact);
    case 'cancelled':
      return brokenOff(work, fact);
    case 'update':
      return resolved(work, fact);
    case 'cancel-requested':
      work.cancelRequested = true;
      return;
    case 'ended':
      return ended(work, fact);
    case 'timer-fired':
    case 'other':
  }
}

function loaded(work: Work, result: unknown, at: number): void {
  if (work.state !== null || !isObject(result) || !isObject(result['definition'])) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own loadAgent
  const state = initialState(result as unknown as RunConfig);
  work.state = reduce(state, { type: 'message-received', text: work.message, at });
}

function scheduled(work: Work, fact: Extract<HistoryFact, { type: 'scheduled' }>): void {
  const { activity, summary, at, input } = fact;
  const asked = isObject(input) ? input : {};
  if (activity === 'callModel') catchUp(work, at);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  const call = isObject(asked['call']) ? (asked['call'] as unknown as ToolCall) : null;
  work.inFlight.set(fact.id, { activity, summary, call, at });
}

/** A new model call shows that the engine has drawn its own conclusions meanwhile. */
function catchUp(work: Work, at: number): void {
  if (work.state === null) return;
  const action = nextAction(work.state);
  if (action.type === 'begin-closing') {
    work.state = reduce(work.state, { type: 'closing-begun', reason: action.reason, at });
  }
}

function completed(work: Work, fact: Extract<HistoryFact, { type: 'completed' }>): void {
  const done = work.inFlight.get(fact.scheduled);
  work.inFlight.delete(fact.scheduled);
  if (done === undefined) return;
  if (done.activity === 'loadAgent') return loaded(work, fact.result, fact.at);
  if (work.state === null || !isObject(fact.result)) return;
  if (done.activity === 'callModel') {
    work.blocked.delete('model');
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own callModel
    const reply = fact.result as unknown as RecordedReply;
    work.state = reduce(work.state, { type: 'model-replied', reply, at: fact.at });
  } else if (done.call !== null) {
    const verified = done.activity === 'runFunction' ? fact.result['result'] : fact.result;
    if (isObject(verified)) toolReturned(work, { call: done.call, result: verified, at: fact.at });
  }
}

function toolReturned(
  work: Work,
  given: { call: ToolCall; result: Record<string, unknown>; at: number },
): void {
  const { call, result, at } = given;
  const tool = work.state === null ? undefined : toolOf(work.state, call.name);
  if (tool === undefined) return;
  if (result['ok'] === 'unknown') {
    return unknown(work, call, textOf(result, 'message'));
  }
  const text = textOf(result, 'text');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own runTool
  const success = result as unknown as Parameters<typeof succeededCall>[2];
  settle(
    work,
    result['ok'] === true ? succeededCall(call, tool, success) : refusedCall(call, text),
    at,
  );
}

function failed(work: Work, fact: Extract<HistoryFact, { type: 'failed' }>): void {
  const done = work.inFlight.get(fact.scheduled);
  work.inFlight.delete(fact.scheduled);
  if (done === undefined || work.state === null) return;
  const problem = parseProblem(fact.failure.details);
  if (problem?.type === 'blocked') {
    const { reason, message } = problem;
    work.blocked.set(done.call?.id ?? 'model', { reason, message });
  } else if (done.activity === 'callModel') {
    const { reason, message } = problem ?? {
      reason: 'error' as const,
      message: fact.failure.message,
    };
    work.state = reduce(work.state, { type: 'model-failed', reason, message });
  } else if (done.activity === 'runTool' && done.call !== null) {
    toolFailed(work, { call: done.call, failure: fact.failure, at: fact.at });
  }
}

function toolFailed(work: Work, given: { call: ToolCall; failure: FactFailure; at: number }): void {
  const { call, failure, at } = given;
  const { message } = failure;
  if (!failure.timedOut) {
    return settle(work, failedCall(call, { type: 'tool_error', message }), at);
  }
  const tool = work.state === null ? undefined : toolOf(work.state, call.name);
  const lost = lostMessage(call.name, message);
  if (tool?.effect === 'once') return unknown(work, call, lost);
  settle(work, lostCall(call, lost), at);
}

function unknown(work: Work, call: ToolCall, message: string): void {
  work.blocked.set(call.id, { reason: 'outcome_unknown', message });
}

function brokenOff(work: Work, fact: Extract<HistoryFact, { type: 'cancelled' }>): void {
  const done = work.inFlight.get(fact.scheduled);
  work.inFlight.delete(fact.scheduled);
  if (done === undefined || work.state === null) return;
  const tool = done.call === null ? undefined : toolOf(work.state, done.call.name);
  if (done.call !== null && tool !== undefined) {
    work.results.set(done.call.id, cancelledCall(done.call, tool));
  }
  const running = [...work.inFlight.values()].some(({ call }) => call !== null);
  // `resume` cancels a probe, and nothing but the probe; the block it had shows that it was one.
  if (running || work.blocked.has('model')) return;
  interrupt(work, fact.at);
}

function interrupt(work: Work, at: number): void {
  if (work.state === null || work.state.turn.outcome !== null) return;
  const by = work.cancelRequested ? 'cancel' : 'wallMs';
  const results = [...work.results.values()];
  work.results.clear();
  work.state = reduce(work.state, { type: 'interrupted', by, results, at });
}

function resolved(work: Work, fact: Extract<HistoryFact, { type: 'update' }>): void {
  if (fact.name !== 'resolve' || !isObject(fact.input) || work.state === null) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- passed the update's validator
  const resolution = fact.input as unknown as Resolution;
  work.blocked.delete(resolution.call);
  const call = work.state.turn.batch?.calls.find(({ id }) => id === resolution.call);
  const tool = call && toolOf(work.state, call.name);
  const result = call && tool && resolvedCall(call, tool, resolution);
  if (result) settle(work, result, fact.at);
}

/** Keeps a result until all that the loop waits for are there, as the loop does. */
function settle(work: Work, result: CallResult, at: number): void {
  work.blocked.delete(result.id);
  work.results.set(result.id, result);
  if (work.state === null) return;
  const action = nextAction(work.state);
  if (action.type !== 'run-calls') return;
  const results = action.calls.flatMap(({ id }) => work.results.get(id) ?? []);
  if (results.length < action.calls.length) return;
  for (const { id } of results) work.results.delete(id);
  work.state = reduce(work.state, { type: 'calls-finished', results, at });
}

function ended(work: Work, fact: Extract<HistoryFact, { type: 'ended' }>): void {
  work.ended = fact;
  work.inFlight.clear();
  work.blocked.clear();
  if (fact.how === 'cancelled') interrupt(work, fact.at);
  const outcome = outcomeOf(fact);
  if (work.state !== null && outcome !== null) {
    work.state = { ...work.state, turn: { ...work.state.turn, outcome } };
  }
}

/** The outcome as the workflow itself recorded it, whichever way it ended. */
export function outcomeOf(fact: Extract<HistoryFact, { type: 'ended' }>): Outcome | null {
  const { result } = fact;
  const fits = isObject(result) && typeof result['status'] === 'string' && 'steps' in result;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  return fits ? (result as unknown as Outcome) : null;
}
