import { runCancelled } from '../core/ends.js';
import { parseProblem } from '../core/failure.js';
import { isProblem, parseRunInput } from '../core/input.js';
import { isObject } from '../core/json.js';
import type { Message, ToolCall } from '../core/messages.js';
import type { Outcome } from '../core/outcome.js';
import type { RecordedReply } from '../core/reply.js';
import { paidFor } from '../core/spend.js';
import { initialState, type RunConfig, type RunState } from '../core/state.js';
import type { HistoryFact } from './history-facts.js';
import { forkedFrom, kept, retrieved } from './retelling-beside-steps.js';
import { safetyAsked } from './retelling-safety.js';
import { tell } from './retelling-tell.js';
import { catchUp, interrupt, turnOver, windUp } from './retelling-turns.js';
import {
  outcomeOf,
  type EndedFact,
  type FactOf,
  type InFlight,
  type Retelling,
} from './retelling-state.js';
import { personSaid } from './retelling-people.js';
import { childEnded, childStarted } from './retelling-children.js';
import { callBrokenOff, callFailed, callReturned } from './retelling-calls.js';

/** Work within a turn, of which each shows that the engine has come so far. */
const STEPS: readonly string[] = ['callModel', 'runTool', 'retrieveDocuments'];

/** Takes in the next event. */
export function retell(told: Retelling, fact: HistoryFact): void {
  told.lastEvent = fact.id;
  told.startedAt ??= fact.at;
  take(told, fact);
  windUp(told, fact.at);
  safetyAsked(told, fact.id);
}

function take(told: Retelling, fact: HistoryFact): void {
  switch (fact.type) {
    case 'started':
      return started(told, fact);
    case 'local':
      if (isObject(fact.result)) loadedAgain(told, fact.result, fact.at);
      return;
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
    case 'child-ended':
      return childEnded(told, fact);
    case 'update':
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
    case 'timer-fired':
    case 'command':
    case 'task-started':
    case 'task-completed':
    case 'other':
  }
}

function started(told: Retelling, { input, carried }: FactOf<'started'>): void {
  const parsed = parseRunInput(input, { continued: carried !== null });
  told.input = isProblem(parsed) ? null : parsed;
  if (!isObject(carried) || !isObject(carried['state'])) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  told.state = carried['state'] as unknown as RunState;
  told.said.push(...told.state.transcript.messages);
  told.said.sort((one, other) => one.n - other.n);
}

function loaded(told: Retelling, result: Record<string, unknown>, at: number): void {
  if (!isObject(result['definition'])) return;
  const { open = false, message: text, attachments } = told.input ?? {};
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own loadAgent
  const config = result as unknown as RunConfig;
  told.state = initialState(config, { open, startedAt: told.startedAt ?? at });
  if (text !== undefined) {
    const message = { id: '', text, turn: 1, ...(attachments && { attachments }) };
    tell(told, { type: 'message-received', message });
  }
  for (const fact of told.early.splice(0)) personSaid(told, fact);
  if (told.cancelRequested) tell(told, { type: 'ending', by: 'cancelled' });
}

function scheduled(told: Retelling, fact: FactOf<'scheduled'>): void {
  const { activity, activityId, summary, at } = fact;
  const input = isObject(fact.input) ? fact.input : {};
  if (STEPS.includes(activity)) catchUp(told, at, { activity, input });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  const call = isObject(input['call']) ? (input['call'] as unknown as ToolCall) : null;
  told.inFlight.set(fact.id, { activity, activityId, summary, call, input, at });
}

function completed(told: Retelling, fact: FactOf<'completed'>): void {
  const done = takeDone(told, fact.scheduled);
  if (done === undefined || !isObject(fact.result)) return;
  switch (done.activity) {
    case 'loadAgent':
      return loadedAgain(told, fact.result, fact.at);
    case 'forkMessages':
      return forkedFrom(told, done, fact.result);
    case 'keepMessages':
      return kept(told, done, fact.result);
    case 'retrieveDocuments':
      return retrieved(told, fact.result, fact.at);
    case 'callModel':
      return replied(told, { done, result: fact.result, at: fact.at });
    default: {
      if (done.call === null) return;
      const verified = done.activity === 'runFunction' ? fact.result['result'] : fact.result;
      if (isObject(verified)) callReturned(told, fact, { call: done.call, result: verified });
    }
  }
}

function loadedAgain(told: Retelling, result: Record<string, unknown>, at: number): void {
  if (told.state === null) return loaded(told, result, at);
  if (!isObject(result['definition'])) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own loadAgent
  tell(told, { type: 'agent-refreshed', config: result as unknown as RunConfig });
}

function replied(
  told: Retelling,
  { done, result, at }: { done: InFlight; result: Record<string, unknown>; at: number },
): void {
  told.blocked.delete('model');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own callModel
  const reply = result as unknown as RecordedReply;
  const cut = done.input['compact'];
  const before = told.said.length;
  if (typeof cut === 'number') tell(told, { type: 'compacted', cut, reply, at });
  else tell(told, { type: 'model-replied', reply, at });
  const brought = told.said.slice(before).find(isOfModel);
  const price = told.state?.config.price ?? null;
  if (brought !== undefined) told.paid.set(brought.n, paidFor(reply.usage, price));
}

function isOfModel(message: Message): boolean {
  return message.role === 'assistant' || (message.role === 'user' && !!message.compacts);
}

function failed(told: Retelling, fact: FactOf<'failed'>): void {
  const done = takeDone(told, fact.scheduled);
  if (done === undefined || told.state === null) return;
  const { failure } = fact;
  const problem = parseProblem(failure.details);
  const closing = done.input['closing'] === true;
  if (problem?.type === 'blocked' && closing) {
    // A closing call waits for nobody: it has a rung below it.
    tell(told, { type: 'model-failed', reason: 'error', message: problem.message });
  } else if (problem?.type === 'blocked') {
    const { reason, message, definition } = problem;
    const offered = definition !== undefined && { definition };
    const on = done.activity === 'retrieveDocuments' ? 'retrieve' : 'model';
    told.blocked.set(done.call?.id ?? on, { reason, message, since: fact.id, ...offered });
  } else if (done.activity === 'callModel') {
    const lost = { reason: 'error', message: failure.message } as const;
    const { reason, message } = problem?.type === 'failed' ? problem : lost;
    const cut = done.input['compact'];
    if (typeof cut === 'number') tell(told, { type: 'compacted', cut, reply: null, at: fact.at });
    else tell(told, { type: 'model-failed', reason, message });
  } else if (done.activity === 'retrieveDocuments') {
    const message = problem?.message ?? `retrieve: ${failure.message}`;
    tell(told, { type: 'retrieval-failed', message });
  } else if (done.activity === 'loadAgent') {
    tell(told, { type: 'agent-refreshed', config: null });
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
  if (running || told.blocked.has('model') || told.blocked.has('retrieve')) return;
  interrupt(told, fact.at);
}

function takeDone(told: Retelling, scheduledEvent: number): InFlight | undefined {
  const done = told.inFlight.get(scheduledEvent);
  told.inFlight.delete(scheduledEvent);
  return done;
}

function ended(told: Retelling, fact: EndedFact): void {
  told.ended = fact;
  told.inFlight.clear();
  told.blocked.clear();
  if (fact.how === 'cancelled') interrupt(told, fact.at);
  if (isObject(fact.carried)) return handedOver(told, fact.carried);
  const recorded = outcomeOf(fact);
  const { state } = told;
  told.outcome = recorded ?? (state === null ? null : unrecorded(state, fact));
  // An open run's own end is not that of its last turn.
  if (state !== null && !state.open && recorded !== null) {
    told.state = { ...state, turn: { ...state.turn, outcome: recorded } };
  }
}

/** Where the run goes on elsewhere, what it takes along says how far it came. */
function handedOver(told: Retelling, { state }: Record<string, unknown>): void {
  if (!isObject(state)) return;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- recorded by our own workflow
  told.state = state as unknown as RunState;
  const { next, messages } = told.state.transcript;
  const known = new Map([...told.said, ...messages].map((message) => [message.n, message]));
  const said = [...known.values()].filter(({ n }) => n < next);
  told.said.splice(0, Infinity, ...said.toSorted((one, other) => one.n - other.n));
}

/** A cancelled workflow has no result in its history. */
function unrecorded(state: RunState, { how }: EndedFact): Outcome | null {
  if (how !== 'cancelled') return null;
  return state.open ? runCancelled(state) : (state.turn.outcome ?? runCancelled(state));
}
