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

/** One model call as the loop asks for it: everything else is in the transcript. */
export interface ModelCall {
  readonly closing: boolean;
  readonly maxOutputTokens: number | null;
  /** Not a step: the messages before this place in the prompt shall be summarized. */
  readonly cut?: number;
}

export type ModelCallEnd =
  | {
      readonly type: 'replied';
      readonly reply: RecordedReply;
      /** Somebody broke it off, and the reply came all the same: it counts, and the turn ends. */
      readonly interrupted?: Interruption;
    }
  | { readonly type: 'failed'; readonly reason: FailReason; readonly message: string }
  | { readonly type: 'interrupted'; readonly by: Interruption }
  | Deferred;

/** The work is blocked and was left: the segment is full, and the run goes on in a new one. */
interface Deferred {
  readonly type: 'deferred';
}

export type RetrievalEnd =
  | {
      readonly type: 'retrieved';
      readonly documents: readonly RetrievedDocument[];
      /** Somebody broke it off, and the documents came all the same: they are read, and the turn ends. */
      readonly interrupted?: Interruption;
    }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'interrupted'; readonly by: Interruption }
  | Deferred;

/** A run in memory. People's words change it while work is in flight; so it is read anew each time. */
export interface Run {
  state: RunState;
}

/**
 * What the loop needs of the world.
 *
 * Contract: none of them throws for what a model, a tool or a person does; a throw is a fault of the
 * engine, or ends the segment.
 */
export interface Effects {
  now(): number;
  segment(): SegmentFacts;
  callModel(state: RunState, call: ModelCall): Promise<ModelCallEnd>;
  /**
   * Executes calls of the open batch and reports each result when it arrives. Each call gets one,
   * unless the work was broken off, the run was paused before it began, or it is blocked and was left.
   * @returns what broke the work off, or null
   */
  runCalls(
    state: RunState,
    calls: readonly ToolCall[],
    finished: (result: CallResult) => void,
  ): Promise<Interruption | null>;
  /** Finds the documents for a turn; the newest `asked` messages say what it is about. */
  retrieve(state: RunState, asked: number): Promise<RetrievalEnd>;
  /** Waits until this moment, a message, or an interruption. */
  awaitTime(until: number): Promise<Interruption | null>;
  /** Waits until something else is to be done than this. */
  awaitChange(action: Action): Promise<Interruption | null>;
  /** Writes down that a turn is over, where it can be read without a worker. */
  recordTurn(turn: number, outcome: Outcome): void;
  /** A turn has begun: its clock runs. */
  turnBegun(): void;
  /** Keeps what leaves the history and goes on in a new segment; returns where that was not possible. */
  continueAsNew(): Promise<void>;
  /** The agent as the workers have it now; null where none of them knows it any more. */
  refreshAgent(state: RunState): Promise<RunConfig | null>;
  /**
   * Keeps what a compaction is about to take out of memory. `must`: the run cannot go on without it,
   * and waits, blocked, for a store that is down. @returns whether it may, or what broke the wait off
   */
  keepMessages(must: boolean): Promise<boolean | Interruption>;
  /** Told of each action before it is done. */
  observe(state: RunState, action: Action): void;
}

export function apply(run: Run, event: RunEvent): void {
  run.state = reduce(run.state, event);
}

/** Runs a run to its end: ask what is next, do it, apply what came of it. */
export async function runLoop(run: Run, effects: Effects): Promise<Outcome> {
  for (;;) {
    const action = nextAction(run.state, effects.segment());
    effects.observe(run.state, action);
    // Awaited here and not in a layer of its own: each promise of a step costs replay time.
    switch (action.type) {
      case 'finish':
        return action.outcome;
      case 'call-model': {
        const end = await effects.callModel(run.state, action);
        if (end.type === 'deferred') break;
        apply(run, modelEvent(end, effects.now()));
        if (end.type === 'replied' && end.interrupted !== undefined) {
          apply(run, brokenOff(end.interrupted, effects.now()));
        }
        break;
      }
      case 'run-calls': {
        const by = await effects.runCalls(run.state, action.calls, (result) =>
          apply(run, { type: 'call-finished', result }),
        );
        const at = effects.now();
        apply(run, by === null ? { type: 'calls-finished', at } : brokenOff(by, at));
        break;
      }
      case 'retrieve':
      case 'compact':
      case 'refresh-agent':
      case 'await-time':
      case 'await-message':
      case 'await-resume':
      case 'continue-as-new':
        await pause(run, action, effects);
        break;
      default:
        decide(run, action, effects);
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

/** What a run does beside its steps, and waits for. */
async function pause(
  run: Run,
  action: Extract<Action, { type: Waiting }>,
  effects: Effects,
): Promise<void> {
  switch (action.type) {
    case 'retrieve':
      return retrieved(run, await effects.retrieve(run.state, action.asked), effects.now());
    case 'compact':
      return await compactNow(run, action, effects);
    case 'continue-as-new':
      return await effects.continueAsNew();
    case 'refresh-agent':
      return apply(run, { type: 'agent-refreshed', config: await effects.refreshAgent(run.state) });
    case 'await-time': {
      const by = await effects.awaitTime(action.until);
      const at = effects.now();
      return apply(run, by === null ? { type: 'time-passed', at } : brokenOff(by, at));
    }
    case 'await-message':
    case 'await-resume': {
      const by = await effects.awaitChange(action);
      if (by !== null) apply(run, brokenOff(by, effects.now()));
    }
  }
}

function retrieved(run: Run, end: RetrievalEnd, at: number): void {
  switch (end.type) {
    case 'retrieved':
      apply(run, { type: 'documents-retrieved', documents: end.documents, at });
      if (end.interrupted !== undefined) apply(run, brokenOff(end.interrupted, at));
      return;
    case 'failed':
      return apply(run, { type: 'retrieval-failed', message: end.message });
    case 'interrupted':
      return apply(run, brokenOff(end.by, at));
    case 'deferred':
  }
}

/** What needs nobody but the state. */
function decide(
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
      return apply(run, brokenOff('cancel', at));
    case 'record-turn':
      effects.recordTurn(run.state.turn.number, action.outcome);
      return apply(run, { type: 'turn-recorded', at });
  }
}

/** A compaction that fails is no end: the turn goes on as it is, for as long as the provider reads it. */
async function compactNow(
  run: Run,
  { cut, maxOutputTokens }: Extract<Action, { type: 'compact' }>,
  effects: Effects,
): Promise<void> {
  const kept = await effects.keepMessages(run.state.compaction.wanted);
  if (typeof kept === 'string') return apply(run, brokenOff(kept, effects.now()));
  const call = { closing: false, maxOutputTokens, cut };
  const end = kept ? await effects.callModel(run.state, call) : null;
  const at = effects.now();
  if (end?.type === 'deferred') return;
  if (end?.type === 'interrupted') return apply(run, brokenOff(end.by, at));
  const reply = end?.type === 'replied' ? end.reply : null;
  apply(run, { type: 'compacted', cut, reply, at });
}

function modelEvent(end: Exclude<ModelCallEnd, Deferred>, at: number): RunEvent {
  switch (end.type) {
    case 'replied':
      return { type: 'model-replied', reply: end.reply, at };
    case 'failed':
      return { type: 'model-failed', reason: end.reason, message: end.message };
    case 'interrupted':
      return brokenOff(end.by, at);
  }
}

function brokenOff(by: Interruption, at: number): RunEvent {
  return { type: 'interrupted', by, at };
}
