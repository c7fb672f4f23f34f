import { parseProblem } from '../core/failure.js';
import { isProblem, parseRunInput } from '../core/input.js';
import { isObject } from '../core/json.js';
import type { ToolCall } from '../core/messages.js';
import { nextAction } from '../core/next-action.js';
import { reduce } from '../core/reduce.js';
import type { RecordedReply } from '../core/reply.js';
import { initialState, type RunConfig } from '../core/state.js';
import type { HistoryFact } from './history-facts.js';
import { outcomeOf, type EndedFact, type InFlight, type Retelling } from './retelling-state.js';
import {
  callBrokenOff,
  callFailed,
  callResolved,
  callReturned,
  callsGivenUp,
} from './retelling-calls.js';

type FactOf<T extends HistoryFact['type']> = Extract<HistoryFact, { type: T }>;

/** Takes in the next event. */
export function retell(told: Retelling, fact: HistoryFact): void {
  told.lastEvent = fact.id;
  told.startedAt ??= fact.at;
  switch (fact.type) {
    case 'started': {
      const input = parseRunInput(fact.input);
      if (!isProblem(input)) told.message = input.message ?? '';
      return;
    }
    case 'local':
      return loaded(told, fact.result, fact.at);
    case 'scheduled':
      return scheduled(told, fact);
    case 'completed':
      return completed(told, fact);
    case 'failed':
      return failed(told, fact);
    case 'cancelled':
      return brokenOff(told, fact);
    case 'update':
      if (fact.name === 'resolve') callResolved(told, fact);
      return;
    case 'cancel-requested':
      told.cancelRequested = true;
      return;
    case 'ended':
      return ended(told, fact);
    case 'timer-fired':
    case 'other':
  }
}

function loaded(told: Retelling, result: unknown, at: number): void {
  if (told.state !== null || !isObject(result) || !isObject(result['definition'])) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own loadAgent
  const state = initialState(result as unknown as RunConfig);
  told.state = reduce(state, { type: 'message-received', text: told.message, at });
}

function scheduled(told: Retelling, fact: FactOf<'scheduled'>): void {
  const { activity, activityId, summary, at, input } = fact;
  const asked = isObject(input) ? input : {};
  if (activity === 'callModel') catchUp(told, at, asked['closing'] === true);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  const call = isObject(asked['call']) ? (asked['call'] as unknown as ToolCall) : null;
  told.inFlight.set(fact.id, { activity, activityId, summary, call, at });
}

/** A new model call shows that the engine has drawn its own conclusions meanwhile. */
function catchUp(told: Retelling, at: number, closing: boolean): void {
  if (told.state === null) return;
  callsGivenUp(told, at);
  if (
    closing &&
    told.state.turn.closing === null &&
    nextAction(told.state).type !== 'begin-closing'
  ) {
    // Nothing in the state asks for an end, so the time was up: while blocked, or between two events.
    interrupt(told, at);
  }
  const action = nextAction(told.state);
  if (action.type === 'begin-closing') {
    told.state = reduce(told.state, { type: 'closing-begun', reason: action.reason, at });
  }
}

function completed(told: Retelling, fact: FactOf<'completed'>): void {
  const done = takeDone(told, fact.scheduled);
  if (done === undefined) return;
  if (done.activity === 'loadAgent') return loaded(told, fact.result, fact.at);
  if (told.state === null || !isObject(fact.result)) return;
  if (done.activity === 'callModel') {
    told.blocked.delete('model');
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own callModel
    const reply = fact.result as unknown as RecordedReply;
    told.state = reduce(told.state, { type: 'model-replied', reply, at: fact.at });
  } else if (done.call !== null) {
    const verified = done.activity === 'runFunction' ? fact.result['result'] : fact.result;
    if (isObject(verified)) callReturned(told, fact, { call: done.call, result: verified });
  }
}

function failed(told: Retelling, fact: FactOf<'failed'>): void {
  const done = takeDone(told, fact.scheduled);
  if (done === undefined || told.state === null) return;
  const { failure } = fact;
  const problem = parseProblem(failure.details);
  if (problem?.type === 'blocked') {
    const { reason, message } = problem;
    told.blocked.set(done.call?.id ?? 'model', { reason, message, since: fact.id });
  } else if (done.activity === 'callModel') {
    const { reason, message } = problem ?? { reason: 'error' as const, message: failure.message };
    told.state = reduce(told.state, { type: 'model-failed', reason, message });
  } else if (done.activity === 'runTool' && done.call !== null) {
    callFailed(told, fact, { call: done.call, failure });
  }
}

function brokenOff(told: Retelling, fact: FactOf<'cancelled'>): void {
  const done = takeDone(told, fact.scheduled);
  if (done === undefined || told.state === null) return;
  if (done.call !== null) callBrokenOff(told, done.call);
  const running = [...told.inFlight.values()].some(({ call }) => call !== null);
  // `resume` cancels a probe, and nothing but the probe; the block it had shows that it was one.
  if (running || told.blocked.has('model')) return;
  interrupt(told, fact.at);
}

function takeDone(told: Retelling, scheduledEvent: number): InFlight | undefined {
  const done = told.inFlight.get(scheduledEvent);
  told.inFlight.delete(scheduledEvent);
  return done;
}

function interrupt(told: Retelling, at: number): void {
  if (told.state === null || told.state.turn.outcome !== null) return;
  const by = told.cancelRequested ? 'cancel' : 'wallMs';
  const results = [...told.results.values()];
  told.results.clear();
  told.state = reduce(told.state, { type: 'interrupted', by, results, at });
}

function ended(told: Retelling, fact: EndedFact): void {
  told.ended = fact;
  told.inFlight.clear();
  told.blocked.clear();
  if (fact.how === 'cancelled') interrupt(told, fact.at);
  const outcome = outcomeOf(fact);
  if (told.state !== null && outcome !== null) {
    told.state = { ...told.state, turn: { ...told.state.turn, outcome } };
  }
}
