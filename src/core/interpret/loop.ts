import type { SegmentFacts } from '../run/carry.js';
import type { Fact, RunEvent } from '../run/events.js';
import {
  type Action,
  type AtOnceAction,
  type TimedAction,
  nextAction,
} from '../run/next-action.js';
import { reduce } from '../run/reduce.js';
import { endTurn, failed } from '../state/change.js';
import type { RunState } from '../state/state.js';
import { WORK } from '../state/work.js';
import type { Outcome } from '../transcript/outcome.js';
import { interpret } from './interpret.js';

/**
 * A run in memory. Facts replace the state while work is in flight, so callers must read it each
 * time.
 */
export interface Run {
  state: RunState;
  /** Called after each event that was applied. */
  readonly applied?: (event: RunEvent, before: RunState) => void;
}

/**
 * The side effects of the loop.
 *
 * Contract: an effect does not throw because of a model, a tool, or a person. An exception is a
 * fault of the engine, or ends the segment.
 */
export interface Effects {
  /** Unix time in ms. */
  now(): number;
  segment(): SegmentFacts;
  /**
   * Performs an action, and records what happens as facts. Resolves when the action is done or
   * interrupted, or when a pause or the end of the segment prevents further work.
   */
  perform(action: TimedAction): Promise<unknown>;
  /** Called when an instant action has changed the state. */
  changed(action: AtOnceAction): void;
  /** Called before each action; tests use it. */
  readonly observe?: (state: RunState, action: Action) => void;
}

/** Applies an event to the run's state. */
export function apply(run: Run, event: RunEvent): void {
  const before = run.state;
  run.state = reduce(before, event);
  run.applied?.(event, before);
}

/**
 * Applies a fact's events to the run's state. A deadline that has already passed takes effect
 * first.
 */
export function record(run: Run, fact: Fact): void {
  const { at } = fact;
  for (const event of interpret(run.state, { type: 'clock', at })) apply(run, event);
  if (fact.type === 'clock') return;
  for (const event of interpret(run.state, fact)) apply(run, event);
}

/** Drives a run to its end: it finds the next action, performs it, and applies its result. */
export async function runLoop(run: Run, effects: Effects): Promise<Outcome> {
  for (;;) {
    const action = nextActionAt(run, effects.segment(), effects.now());
    effects.observe?.(run.state, action);
    if (action.type === 'finish') return action.outcome;
    if (isAtOnce(action)) {
      for (const event of toEvents(action, effects.now())) apply(run, event);
      effects.changed(action);
    } else await effects.perform(action);
  }
}

/** Returns the next action of a run at this time, in Unix time in ms. */
export function nextActionAt(run: Run, segment: SegmentFacts, now: number): Action {
  record(run, { type: 'clock', at: now });
  return nextAction(run.state, segment, now);
}

const AT_ONCE: readonly Action['type'][] = [
  'join-messages',
  'begin-closing',
  'end-at-limit',
  'interrupt',
  'raise-requests',
  'ask-limit',
  'pass-time',
  'record-turn',
  'begin-turn',
  'begin-node',
  'close-unused',
] satisfies readonly AtOnceAction['type'][];

/** Whether an action is instant. */
export function isAtOnce(action: Action): action is AtOnceAction {
  return AT_ONCE.includes(action.type);
}

/** Returns the events of an instant action. `at`: Unix time in ms. */
export function toEvents(action: AtOnceAction, at: number): readonly RunEvent[] {
  switch (action.type) {
    case 'join-messages':
      return [{ type: 'messages-joined', at }];
    case 'begin-closing':
      return [{ type: 'closing-begun', reason: action.reason, at }];
    case 'end-at-limit':
      return [{ type: 'turn-ended-at-limit', reason: action.reason, at }];
    case 'interrupt':
      return [{ type: 'turn-interrupted', by: action.by, at }];
    case 'raise-requests':
      return action.requests.map(({ call, request }) => ({
        type: 'request-raised',
        work: call,
        request: { ...request, raisedAt: at },
      }));
    case 'ask-limit':
      return [{ type: 'request-raised', work: WORK.limit, request: action.request }];
    case 'pass-time':
      return [{ type: 'time-passed', at }];
    case 'record-turn':
      return [{ type: 'turn-recorded', at }];
    case 'begin-turn':
      return [{ type: 'turn-begun', at }];
    case 'begin-node':
      return [{ type: 'node-begun', at }];
    case 'close-unused':
      return [{ type: 'end-requested', by: 'closed' }];
  }
}

/**
 * Ends the turn after a fault of the engine. The open calls also get results, because providers
 * refuse a prompt with open calls.
 */
export function closeFailedTurn(
  state: RunState,
  { message, at }: { readonly message: string; readonly at: number },
): RunState {
  const closed = reduce(state, { type: 'turn-interrupted', by: 'cancelTurn', at });
  return endTurn(closed, failed(closed, { reason: 'error', message }));
}
