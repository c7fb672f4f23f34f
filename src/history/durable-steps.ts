import type { ActionProgress } from '../core/run/details.js';
import type { UndoState } from '../core/state/undo.js';
import type { JsonObject } from '../core/text/json.js';
import type {
  AssistantMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from '../core/transcript/messages.js';
import type { BlockedReason, Outcome, Retried, Usage } from '../core/transcript/outcome.js';
import type { RequestKind } from '../core/transcript/request.js';

/**
 * A durable step of a run, derived from its history. The same history always produces the same
 * steps, so a reader can resume after the `offset` of the last processed step.
 */
export type DurableEvent = DurableStep & {
  /** The step's place in the run, to pass back as `from`. Its format may change. */
  readonly offset: string;
  /** Unix time in ms, by the server. */
  readonly at: number;
};

/**
 * `usage`: what the model call cost; absent if this segment does not show the call. `retried`: the
 * attempts, if the first one did not succeed, without those that an earlier segment made.
 */
export type DurableStep =
  | { readonly type: 'run-started'; readonly agent: string; readonly open: boolean }
  /** The run continues in a new segment; `segment` is its number, from 1. */
  | { readonly type: 'segment-begun'; readonly segment: number; readonly runId: string }
  | { readonly type: 'turn-begun'; readonly turn: number }
  /** A node of the run's graph has begun; `visit` counts its visits in the run, from 1. */
  | { readonly type: 'node-begun'; readonly node: string; readonly visit: number }
  /**
   * The run has left a node by an exit, before the end of the turn. A node that takes no time, such as
   * a `choose`, only ends. `ms`: how long the visit took, without the time that the run waited for
   * people. `patch`: the fields of the state that it has
   * changed; absent if it changed none. `modelCalls`, `steps`: its model calls, including those of its
   * function, and the steps of the agents that it has called. `attempts`: all attempts at its work, if
   * some of it was retried. `items`: how many items of an `each` there were, and how many of them have
   * succeeded; `errors`: why the first of the others failed, by item, counted from 1. Each is absent
   * if there was none, and so is what an earlier segment did. `interrupted`: the turn ended in the
   * node, by no exit of it; `exit` is then the status of the turn, and `ms` is 0. `by`: who decided at
   * the node, if the run asked a person there; `door`: the interface that has verified `by`.
   * `actions`: the ids of the actions of a plan that a person has chosen by `some`; empty if a node had
   * a plan without actions to execute.
   */
  | {
      readonly type: 'node-ended';
      readonly node: string;
      readonly exit: string;
      readonly ms: number;
      readonly patch?: JsonObject;
      readonly modelCalls?: number;
      readonly steps?: number;
      readonly attempts?: number;
      readonly items?: {
        readonly done: number;
        readonly total: number;
        readonly errors?: readonly { readonly item: number; readonly message: string }[];
      };
      readonly interrupted?: true;
      readonly by?: string;
      readonly door?: string;
      readonly actions?: readonly string[];
    }
  /**
   * A model has replied to the function of a node (`context.generate`). `item`: the item of an `each`,
   * counted from 1. `text`: the beginning of the reply.
   */
  | {
      readonly type: 'node-replied';
      readonly node: string;
      readonly item?: number;
      readonly model: string;
      readonly text: string;
      readonly usage: Usage;
    }
  /** Items of an `each` have ended: `done` of `total` so far, of which `failed` have failed. */
  | {
      readonly type: 'items-ended';
      readonly node: string;
      readonly done: number;
      readonly failed: number;
      readonly total: number;
    }
  /** The run has a plan, or has changed it. */
  | { readonly type: 'plan-made'; readonly actions: readonly ActionProgress[] }
  /** An action of the plan has made progress; `done` of `total` have succeeded so far. */
  | {
      readonly type: 'action-changed';
      readonly action: ActionProgress;
      readonly done: number;
      readonly total: number;
    }
  /**
   * A message of a person or of the engine, a retrieved document or a graph's answer (see `origin`),
   * or an assistant's earlier message supplied by the sender (see `supplied`).
   */
  | { readonly type: 'message-added'; readonly message: UserMessage | AssistantMessage }
  /** A step: the text of the model's reply, and the calls that it requests. */
  | {
      readonly type: 'model-replied';
      readonly message: AssistantMessage;
      readonly usage?: Usage;
      readonly retried?: Retried;
    }
  /**
   * An answer that violates its contract, with the message to the model. Later prompts omit both.
   */
  | {
      readonly type: 'answer-refused';
      readonly message: AssistantMessage;
      readonly problem: string;
      readonly usage?: Usage;
      readonly retried?: Retried;
    }
  /** A call was passed to a worker or to another agent. Other calls are only finished. */
  | { readonly type: 'call-begun'; readonly turn: number; readonly call: ToolCall }
  /** Emitted in call order when all calls of the step have ended. */
  | {
      readonly type: 'call-finished';
      readonly tool: string;
      readonly message: ToolMessage;
      readonly retried?: Retried;
    }
  /** The model reads this summary in place of the messages that it replaces. */
  | {
      readonly type: 'transcript-compacted';
      readonly message: UserMessage;
      readonly usage?: Usage;
    }
  /** `on`: the id of a call, or `model`. */
  | {
      readonly type: 'work-blocked';
      readonly on: string;
      readonly reason: BlockedReason;
      readonly message: string;
    }
  | { readonly type: 'work-unblocked'; readonly on: string }
  /** The run waits for a decision. `kind`, `call`, and `why` are those of the request. */
  | {
      readonly type: 'request-raised';
      readonly request: string;
      readonly kind: RequestKind;
      readonly call?: string;
      readonly why: string;
    }
  /** `as`: the decision, or `expired`; null if the reason for the request disappeared by itself. */
  | {
      readonly type: 'request-closed';
      readonly request: string;
      readonly as: string | null;
      readonly by?: string;
      /** The interface that has verified `by`; absent: a claim. */
      readonly door?: string;
    }
  /**
   * A call is being undone, was undone, or was not: `message` says why. `call`: the id of the call that
   * had succeeded before.
   */
  | {
      readonly type: 'undo-changed';
      readonly call: string;
      readonly tool: string;
      readonly state: UndoState;
      readonly message?: string;
    }
  | { readonly type: 'run-paused' }
  | { readonly type: 'run-resumed' }
  /** The run has nothing to do until then; `until`: Unix time in ms. */
  | { readonly type: 'wait-begun'; readonly for: 'message' }
  | { readonly type: 'wait-begun'; readonly for: 'time'; readonly until: number }
  | { readonly type: 'turn-ended'; readonly turn: number; readonly outcome: Outcome }
  /** `reason`: the outcome's reason; `terminated` or `timed_out` if Temporal ended the run. */
  | { readonly type: 'run-ended'; readonly reason: string; readonly outcome: Outcome };
