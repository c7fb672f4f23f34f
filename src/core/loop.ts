import type { CallResult } from './calls.js';
import type { Interruption, RunEvent } from './events.js';
import type { ToolCall } from './messages.js';
import { nextAction, type Action } from './next-action.js';
import type { FailReason } from './outcome.js';
import { reduce } from './reduce.js';
import type { RecordedReply } from './reply.js';
import type { RunState } from './state.js';

/** One model call as the loop asks for it: everything else is in the transcript. */
export interface ModelCall {
  readonly closing: boolean;
  readonly maxOutputTokens: number | null;
}

export type ModelCallEnd =
  | { readonly type: 'replied'; readonly reply: RecordedReply }
  | { readonly type: 'failed'; readonly reason: FailReason; readonly message: string }
  | { readonly type: 'interrupted'; readonly by: Interruption };

export interface CallsEnd {
  readonly results: readonly CallResult[];
  /** Set when the work was broken off; `results` then holds what had ended. */
  readonly interrupted?: Interruption;
}

/**
 * What the loop needs of the world.
 *
 * Contract: neither `callModel` nor `runCalls` throws for what a model, a tool or a person does;
 * a throw is a fault of the engine. `runCalls` gives one result per call unless interrupted.
 */
export interface Effects {
  now(): number;
  callModel(state: RunState, call: ModelCall): Promise<ModelCallEnd>;
  runCalls(state: RunState, calls: readonly ToolCall[]): Promise<CallsEnd>;
  /** Told of each state with the action that follows from it. */
  observe(state: RunState, action: Action): void;
}

/** Runs the open turn to its outcome: ask what is next, do it, apply what came of it. */
export async function runTurn(from: RunState, effects: Effects): Promise<RunState> {
  let state = from;
  for (;;) {
    const action = nextAction(state);
    effects.observe(state, action);
    switch (action.type) {
      case 'finish':
        return state;
      case 'call-model': {
        const end = await effects.callModel(state, action);
        state = reduce(state, modelEvent(end, effects.now()));
        break;
      }
      case 'run-calls': {
        const end = await effects.runCalls(state, action.calls);
        state = reduce(state, callsEvent(end, effects.now()));
        break;
      }
      case 'begin-closing':
        state = reduce(state, { type: 'closing-begun', reason: action.reason, at: effects.now() });
        break;
      case 'end-at-limit':
        state = reduce(state, { type: 'limit-ended', reason: action.reason });
    }
  }
}

function modelEvent(end: ModelCallEnd, at: number): RunEvent {
  switch (end.type) {
    case 'replied':
      return { type: 'model-replied', reply: end.reply, at };
    case 'failed':
      return { type: 'model-failed', reason: end.reason, message: end.message };
    case 'interrupted':
      return { type: 'interrupted', by: end.by, results: [], at };
  }
}

function callsEvent(end: CallsEnd, at: number): RunEvent {
  const { results, interrupted } = end;
  if (interrupted === undefined) return { type: 'calls-finished', results, at };
  return { type: 'interrupted', by: interrupted, results, at };
}
