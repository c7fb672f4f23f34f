import type { CallResult } from './calls/call-result.js';
import type { SegmentFacts } from './segments/carry.js';
import type { RetrievedDocument } from './documents.js';
import type { Interruption, RunEvent } from './events.js';
import type { ToolCall } from './transcript/messages.js';
import { nextAction, type Action } from './next-action.js';
import type { FailReason, Outcome } from './outcome.js';
import { reduce } from './reduce.js';
import type { RecordedReply } from './reply.js';
import type { RunConfig, RunState } from './state.js';

/** One model call as the loop requests it. Everything else is in the transcript. */
export interface ModelCall {
  readonly closing: boolean;
  readonly maxOutputTokens: number | null;
  /** Summarize the messages before this place in the prompt; such a call is not a step. */
  readonly cut?: number;
}

/** How a model call ended. */
export type ModelCallEnd =
  | {
      readonly type: 'replied';
      readonly reply: RecordedReply;
      /** The call was interrupted, but the reply arrived: the reply counts, and the turn ends. */
      readonly interrupted?: Interruption;
    }
  | { readonly type: 'failed'; readonly reason: FailReason; readonly message: string }
  | { readonly type: 'interrupted'; readonly by: Interruption }
  | Deferred;

/** The work is blocked and the segment is full, so the next segment continues the work. */
interface Deferred {
  readonly type: 'deferred';
}

/** How a retrieval ended. */
export type RetrievalEnd =
  | {
      readonly type: 'retrieved';
      readonly documents: readonly RetrievedDocument[];
      /** The retrieval was interrupted, but the documents arrived: they count, and the turn ends. */
      readonly interrupted?: Interruption;
    }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'interrupted'; readonly by: Interruption }
  | Deferred;

/** A run in memory. Messages and decisions replace the state while work is in flight, so read it each time. */
export interface Run {
  state: RunState;
}

/**
 * The side effects of the loop.
 *
 * Contract: an effect does not throw because of a model, a tool, or a person. An exception is a fault
 * of the engine, or ends the segment.
 */
export interface Effects {
  /** Unix time in ms. */
  now(): number;
  segment(): SegmentFacts;
  callModel(state: RunState, call: ModelCall): Promise<ModelCallEnd>;
  /**
   * Executes calls of the open batch and reports each result when it arrives. Each call gets one, unless
   * the work was interrupted, the run was paused before the call began, or the call is blocked and was
   * deferred. Returns the interruption, or null.
   */
  runCalls(
    state: RunState,
    calls: readonly ToolCall[],
    finished: (result: CallResult) => void,
  ): Promise<Interruption | null>;
  /** Retrieves the documents for a turn. The newest `asked` messages are what the turn is about. */
  retrieve(state: RunState, asked: number): Promise<RetrievalEnd>;
  /** Waits until `until` (Unix time in ms), a message, or an interruption. */
  awaitTime(until: number): Promise<Interruption | null>;
  /** Waits until the next action differs from this one. */
  awaitChange(action: Action): Promise<Interruption | null>;
  /** Records the end of a turn where it can be read without a worker. */
  recordTurn(turn: number, outcome: Outcome): void;
  /** Called when a turn has begun: starts its deadline timer. */
  turnBegun(): void;
  /** Archives messages and continues in a new segment. Returns only if that was not possible. */
  continueAsNew(): Promise<void>;
  /** Loads the agent's newest definition; null if no worker has the agent any more. */
  refreshAgent(state: RunState): Promise<RunConfig | null>;
  /**
   * Archives the messages that a compaction removes from memory. `must`: the run is blocked while the
   * archive is down. Returns whether the messages are archived, or the interruption.
   */
  archiveMessages(must: boolean): Promise<boolean | Interruption>;
  /** Called before each action. */
  observe(state: RunState, action: Action): void;
}

/** Applies an event to the run's state. */
export function apply(run: Run, event: RunEvent): void {
  run.state = reduce(run.state, event);
}

/** Runs a run to its end: finds the next action, performs it, and applies its result. */
export async function runLoop(run: Run, effects: Effects): Promise<Outcome> {
  for (;;) {
    const action = nextAction(run.state, effects.segment());
    effects.observe(run.state, action);
    // Awaited here, not in a function of its own: each promise of a step makes replay slower.
    switch (action.type) {
      case 'finish':
        return action.outcome;
      case 'call-model': {
        const end = await effects.callModel(run.state, action);
        if (end.type === 'deferred') break;
        apply(run, toModelEvent(end, effects.now()));
        if (end.type === 'replied' && end.interrupted !== undefined) {
          apply(run, interruptedEvent(end.interrupted, effects.now()));
        }
        break;
      }
      case 'run-calls': {
        const by = await effects.runCalls(run.state, action.calls, (result) =>
          apply(run, { type: 'call-finished', result }),
        );
        const at = effects.now();
        apply(run, by === null ? { type: 'calls-finished', at } : interruptedEvent(by, at));
        break;
      }
      case 'retrieve':
      case 'compact':
      case 'refresh-agent':
      case 'await-time':
      case 'await-message':
      case 'await-resume':
      case 'continue-as-new':
        await performWait(run, action, effects);
        break;
      default:
        performAtOnce(run, action, effects);
    }
  }
}

type Waiting =
  | 'retrieve'
  | 'compact'
  | 'refresh-agent'
  | 'await-time'
  | 'await-message'
  | 'await-resume'
  | 'continue-as-new';

/** Performs an action that is not a step and that takes time. */
async function performWait(
  run: Run,
  action: Extract<Action, { type: Waiting }>,
  effects: Effects,
): Promise<void> {
  switch (action.type) {
    case 'retrieve':
      return applyRetrieval(run, await effects.retrieve(run.state, action.asked), effects.now());
    case 'compact':
      return await compactMessages(run, action, effects);
    case 'continue-as-new':
      return await effects.continueAsNew();
    case 'refresh-agent':
      return apply(run, { type: 'agent-refreshed', config: await effects.refreshAgent(run.state) });
    case 'await-time': {
      const by = await effects.awaitTime(action.until);
      const at = effects.now();
      return apply(run, by === null ? { type: 'time-passed', at } : interruptedEvent(by, at));
    }
    case 'await-message':
    case 'await-resume': {
      const by = await effects.awaitChange(action);
      if (by !== null) apply(run, interruptedEvent(by, effects.now()));
    }
  }
}

function applyRetrieval(run: Run, end: RetrievalEnd, at: number): void {
  switch (end.type) {
    case 'retrieved':
      apply(run, { type: 'documents-retrieved', documents: end.documents, at });
      if (end.interrupted !== undefined) apply(run, interruptedEvent(end.interrupted, at));
      return;
    case 'failed':
      return apply(run, { type: 'retrieval-failed', message: end.message });
    case 'interrupted':
      return apply(run, interruptedEvent(end.by, at));
    case 'deferred':
  }
}

/** Performs an action that changes only the state. */
function performAtOnce(
  run: Run,
  action: Exclude<Action, { type: Waiting | 'finish' | 'call-model' | 'run-calls' }>,
  effects: Effects,
): void {
  const at = effects.now();
  switch (action.type) {
    case 'join-messages':
      return apply(run, { type: 'messages-joined', at });
    case 'begin-turn':
      apply(run, { type: 'turn-begun', at });
      return effects.turnBegun();
    case 'begin-closing':
      return apply(run, { type: 'closing-begun', reason: action.reason, at });
    case 'end-at-limit':
      return apply(run, { type: 'limit-ended', reason: action.reason });
    case 'end-cancelled':
      return apply(run, interruptedEvent('cancel', at));
    case 'record-turn':
      effects.recordTurn(run.state.turn.number, action.outcome);
      return apply(run, { type: 'turn-recorded', at });
  }
}

/** Summarizes older messages. If that fails, the turn continues while the prompt fits the model. */
async function compactMessages(
  run: Run,
  { cut, maxOutputTokens }: Extract<Action, { type: 'compact' }>,
  effects: Effects,
): Promise<void> {
  const archived = await effects.archiveMessages(run.state.compaction.wanted);
  if (typeof archived === 'string') return apply(run, interruptedEvent(archived, effects.now()));
  const call = { closing: false, maxOutputTokens, cut };
  const end = archived ? await effects.callModel(run.state, call) : null;
  const at = effects.now();
  if (end?.type === 'deferred') return;
  if (end?.type === 'interrupted') return apply(run, interruptedEvent(end.by, at));
  const reply = end?.type === 'replied' ? end.reply : null;
  apply(run, { type: 'compacted', cut, reply, at });
}

function toModelEvent(end: Exclude<ModelCallEnd, Deferred>, at: number): RunEvent {
  switch (end.type) {
    case 'replied':
      return { type: 'model-replied', reply: end.reply, at };
    case 'failed':
      return { type: 'model-failed', reason: end.reason, message: end.message };
    case 'interrupted':
      return interruptedEvent(end.by, at);
  }
}

function interruptedEvent(by: Interruption, at: number): RunEvent {
  return { type: 'interrupted', by, at };
}
