import type { BlockedReason } from '../core/blocked.js';
import type {
  AssistantMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from '../core/transcript/messages.js';
import type { Outcome, Usage } from '../core/outcome.js';

/**
 * A durable step of a run, as its history tells it. The same history gives the same steps, so a
 * reader that was away goes on by the `offset` of the last one that it has dealt with.
 */
export type DurableEvent = DurableStep & {
  /** Where this stands in the run: a text to hand back, not to be read. */
  readonly offset: string;
  /** Unix time in ms, by the server. */
  readonly at: number;
};

/** `usage`: what the model call cost; absent where the history tells only of what came of it. */
export type DurableStep =
  | { readonly type: 'run-started'; readonly agent: string; readonly open: boolean }
  /** The run goes on in a new segment of history, the `segment`th. */
  | { readonly type: 'segment-begun'; readonly segment: number; readonly runId: string }
  | { readonly type: 'turn-begun'; readonly turn: number }
  /** Said by a person, by the engine, or a document that was found (`origin`). */
  | { readonly type: 'message-said'; readonly message: UserMessage }
  /** A step: its text, and in `calls` what the model asked for. */
  | {
      readonly type: 'model-replied';
      readonly message: AssistantMessage;
      readonly usage?: Usage;
    }
  /** An answer that did not keep to its contract, and what the model was told of it; never in the prompt of a later step. */
  | {
      readonly type: 'answer-refused';
      readonly message: AssistantMessage;
      readonly problem: string;
      readonly usage?: Usage;
    }
  /** Handed to a worker or to another agent; a call that needs neither is only finished. */
  | { readonly type: 'call-begun'; readonly turn: number; readonly call: ToolCall }
  /** Told in call order when all calls of the step have ended. */
  | { readonly type: 'call-finished'; readonly tool: string; readonly message: ToolMessage }
  /** The model reads this summary in place of what it stands for. */
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
  | { readonly type: 'run-paused' }
  | { readonly type: 'run-resumed' }
  /** Nothing is to be done until then; `until`: Unix time in ms. */
  | { readonly type: 'wait-begun'; readonly for: 'message' }
  | { readonly type: 'wait-begun'; readonly for: 'time'; readonly until: number }
  | { readonly type: 'turn-ended'; readonly turn: number; readonly outcome: Outcome }
  /** `reason`: the outcome's; `terminated` or `timed_out` where Temporal ended the run. */
  | { readonly type: 'run-ended'; readonly reason: string; readonly outcome: Outcome };
