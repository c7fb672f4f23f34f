import type { BudgetName, Limits } from '../definition/definition.js';
import type { Verdict } from '../definition/rules.js';
import type { Incoming, RefusedMessage } from '../input/inbox.js';
import type { RetrievedDocument } from '../rules/documents.js';
import type { Forked } from '../state/fork.js';
import type { Ending, RecordedDecision, RequestedLimits, RunConfig } from '../state/state.js';
import type { Interruption, TurnInterruption } from '../state/turn.js';
import type { KeptCall, UndoState } from '../state/undo.js';
import type { Proposal, Work } from '../state/work.js';
import type { CallResult } from '../transcript/call-result.js';
import type {
  BlobRef,
  ParsedArguments,
  RefusedPart,
  RequestedCall,
} from '../transcript/messages.js';
import type {
  AttemptReport,
  FailReason,
  Outcome,
  RecordedReply,
  ReplyUsage,
  StopReason,
  Usage,
} from '../transcript/outcome.js';
import type { Grant, NewRequest } from '../transcript/request.js';

/** An event of a run. Only events change its state. `at` is Unix time in ms. */
export type RunEvent = TurnEvent | PersonEvent | SegmentEvent;

/** Events of the work in a turn. */
type TurnEvent =
  | { readonly type: 'turn-begun'; readonly at: number }
  /** The current node of the graph begins its work. */
  | { readonly type: 'node-begun'; readonly at: number }
  /**
   * A called agent's run ended, and the node's next visit continues its conversation. `run`: its
   * workflow id.
   */
  | { readonly type: 'conversation-recorded'; readonly run: string }
  /** Messages for the turn under way become part of its prompt. */
  | { readonly type: 'messages-joined'; readonly at: number }
  /** Documents were retrieved for the turn, before its first model call. */
  | {
      readonly type: 'documents-retrieved';
      readonly documents: readonly RetrievedDocument[];
      readonly at: number;
    }
  | { readonly type: 'retrieval-failed'; readonly message: string }
  /** The agent's `remember` stored the ended turn, or failed to do so, as `reports` show. */
  | { readonly type: 'turn-remembered'; readonly reports: readonly AttemptReport[] }
  /** Parts of a result could not be stored, as `reports` show; its result follows. */
  | { readonly type: 'values-lost'; readonly reports: readonly AttemptReport[] }
  | { readonly type: 'model-replied'; readonly reply: RecordedReply; readonly at: number }
  | {
      readonly type: 'model-failed';
      readonly reason: FailReason;
      readonly message: string;
      /** What of the prompt the provider refused; absent if the prompt is not at fault. */
      readonly refused?: RefusedPart;
      readonly at: number;
    }
  /** The provider refused these messages in a call that was then interrupted. */
  | { readonly type: 'messages-refused'; readonly refused: RefusedPart }
  /** A decision function called its model but returned no decision. */
  | { readonly type: 'tokens-used'; readonly used: ReplyUsage }
  /** The model calls of a node's function cost this. */
  | { readonly type: 'usage-spent'; readonly usage: Usage }
  /** A decision function had no budget left for another model call. */
  | { readonly type: 'limit-hit'; readonly limit: BudgetName }
  /** One call of the open batch has a result. The transcript gets it when the batch is complete. */
  | { readonly type: 'call-finished'; readonly result: CallResult; readonly at: number }
  /** The waits that have ended get their results. */
  | { readonly type: 'time-passed'; readonly at: number }
  /** The work in flight is being canceled; `interrupted` follows when all of it has stopped. */
  | { readonly type: 'interruption-requested'; readonly by: TurnInterruption }
  | { readonly type: 'turn-interrupted'; readonly by: Interruption; readonly at: number }
  | { readonly type: 'closing-begun'; readonly reason: StopReason; readonly at: number }
  | { readonly type: 'turn-ended-at-limit'; readonly reason: StopReason; readonly at: number }
  /**
   * The messages before the place `cut` in the prompt were summarized. `reply` is null if that
   * failed.
   */
  | {
      readonly type: 'transcript-compacted';
      readonly cut: number;
      readonly reply: RecordedReply | null;
      readonly at: number;
    }
  | { readonly type: 'turn-recorded'; readonly at: number }
  /** A person changed the arguments of an open call. */
  | { readonly type: 'call-edited'; readonly id: string; readonly call: RequestedCall }
  /** The rules' verdict on a call of a graph's node, which no model reply records. */
  | {
      readonly type: 'verdict-recorded';
      readonly id: string;
      readonly verdict: Verdict;
      readonly parsed?: ParsedArguments;
      /** The call as its tool describes it to people. */
      readonly summary?: string;
    }
  /** What the tool of a call that a person may undo gets, as a worker has found. */
  | { readonly type: 'undo-parsed'; readonly call: string; readonly parsed: ParsedArguments }
  /** A person declined to raise the limit that the turn has reached. */
  | { readonly type: 'limit-kept' }
  /** A person raised the limit, so the turn continues. */
  | { readonly type: 'limit-raised' }
  /** A call that can be undone has succeeded. */
  | { readonly type: 'undo-enabled'; readonly kept: KeptCall; readonly at: number };

/**
 * Messages and decisions of people. They may arrive at any time, including while work is in flight.
 */
export type PersonEvent =
  | { readonly type: 'message-received'; readonly message: Incoming }
  /** A message by signal was refused. The run's status shows it, because a signal has no answer. */
  | { readonly type: 'message-refused'; readonly refused: RefusedMessage }
  /** The record of a decision. Its effect is a separate event. */
  | { readonly type: 'decision-recorded'; readonly decision: RecordedDecision }
  | { readonly type: 'end-requested'; readonly by: Ending }
  | { readonly type: 'pause-changed'; readonly paused: boolean }
  | { readonly type: 'limits-set'; readonly limits: Limits }
  /** Limits for a run whose agent is not loaded yet. They are set when it is. */
  | { readonly type: 'limits-requested'; readonly requested: RequestedLimits }
  /** Work waits for a decision. The reducer gives the request its id. */
  | { readonly type: 'request-raised'; readonly work: string; readonly request: NewRequest }
  /** A decision must be checked on a worker before it takes effect. */
  | { readonly type: 'decision-proposed'; readonly work: string; readonly proposal: Proposal }
  | { readonly type: 'request-notified'; readonly request: string }
  | { readonly type: 'grant-added'; readonly grant: Omit<Grant, 'id'> }
  | { readonly type: 'grant-revoked'; readonly grant: string }
  | {
      readonly type: 'undo-changed';
      readonly call: string;
      readonly state: UndoState;
      readonly message?: string;
    }
  /** A person has accepted the current form of a tool that its MCP server has changed. */
  | { readonly type: 'tool-accepted'; readonly tool: string; readonly definition: string };

/** Events of the run outside its turns. */
export type SegmentEvent =
  | { readonly type: 'agent-loaded'; readonly config: RunConfig }
  /** The run begins with the messages of another run. */
  | ({ readonly type: 'run-forked' } & Forked)
  /** `config` is null if no worker has the agent any longer; the run then keeps its definition. */
  | { readonly type: 'agent-refreshed'; readonly config: RunConfig | null }
  | {
      readonly type: 'messages-archived';
      /** Number of the first message that is not in the archive. */
      readonly archived: number;
      /**
       * The blob that now holds the oldest `count` messages in memory; null if none was written.
       */
      readonly chunk: { readonly blob: BlobRef; readonly count: number } | null;
    }
  /** The segment cannot end now; the run tries again later. */
  | { readonly type: 'segment-kept'; readonly at: number }
  | { readonly type: 'segment-begun' }
  /** The calls of these tools are activities until the end of the segment. */
  | { readonly type: 'inline-stopped'; readonly tools: readonly string[] }
  /** Work was begun, or its progress has changed. */
  | { readonly type: 'work-changed'; readonly work: Work }
  | { readonly type: 'work-ended'; readonly name: string };

/** Why an activity failed: the innermost failure. */
export interface Failure {
  readonly message: string;
  /** The failure's type, as set by the worker; empty if it set none. */
  readonly type: string;
  readonly timedOut: boolean;
  readonly details: readonly unknown[];
}

/** An activity, or the run of a called agent, as recorded in the history. */
export interface Task {
  /** The activity's type; `agent` for the run of a called agent. */
  readonly activity: string;
  /** The recorded input. */
  readonly input: unknown;
}

interface Patched {
  /**
   * In a run without `semantics`: a version that has them received this, so it has their meaning.
   * The history shows it by a marker, `SEMANTICS_PATCH`.
   */
  readonly patched?: true;
}

/**
 * Something that happened to a run and is recorded in its history. The workflow receives it from
 * Temporal, a reader from the history; `interpret` turns it into events. `at`: the workflow's
 * clock, in Unix time in ms.
 */
export type Fact = { readonly at: number } & (
  | { readonly type: 'clock' }
  | { readonly type: 'cancel-requested' }
  | ({
      readonly type: 'update';
      readonly name: string;
      readonly id: string;
      readonly input: unknown;
    } & Patched)
  | ({ readonly type: 'signal'; readonly name: string; readonly input: unknown } & Patched)
  | { readonly type: 'scheduled'; readonly task: Task }
  | { readonly type: 'completed'; readonly task: Task; readonly result: unknown }
  | { readonly type: 'failed'; readonly task: Task; readonly failure: Failure }
  | {
      readonly type: 'cancelled';
      readonly task: Task;
      /** The activity's report when it stopped; absent if the run did not wait for it. */
      readonly details?: readonly unknown[];
    }
  /** The run of a called agent has ended. `outcome` is null if it left none. */
  | {
      readonly type: 'child-ended';
      readonly call: string;
      readonly outcome: Outcome | null;
      readonly message: string;
    }
  /** A run with the id of the called agent exists already; an activity follows it. */
  | { readonly type: 'child-existed'; readonly call: string }
  /** The state is too large for a new segment, so the run stays in the current one. */
  | { readonly type: 'segment-kept' }
);

export type FactOf<T extends Fact['type']> = Extract<Fact, { type: T }>;

/** How an activity of a run has ended. `work`: the name of the work that it did; empty for none. */
export type EndOf<T extends 'completed' | 'failed' | 'cancelled'> = FactOf<T> & {
  readonly work: string;
};

/** A completed activity whose result has the form of this activity's results. */
export type Completed<R> = EndOf<'completed'> & { readonly result: R };
