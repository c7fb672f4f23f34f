import type { RetrievedDocument } from '../../src/core/rules/documents.js';
import type { Interruption } from '../../src/core/state/turn.js';
import type { RunToolResult } from '../../src/core/guards/recorded.js';
import type { Effects } from '../../src/core/interpret/loop.js';
import type { TimedAction } from '../../src/core/run/next-action.js';
import type { FailReason, RecordedReply } from '../../src/core/transcript/outcome.js';
import type { RunConfig, RunState } from '../../src/core/state/state.js';
import type { ToolCall } from '../../src/core/transcript/messages.js';

/** A call that was interrupted. */
interface Interrupted {
  readonly type: 'interrupted';
  readonly by: Interruption;
}

/** How a model call ends. `interrupted`: the reply arrived despite an interruption. */
export type ModelEnd =
  | Interrupted
  | { readonly type: 'replied'; readonly reply: RecordedReply; readonly interrupted?: Interruption }
  | { readonly type: 'failed'; readonly reason: FailReason; readonly message: string };

/** How a retrieval ends. `interrupted`: the documents arrived despite an interruption. */
export type RetrievalEnd =
  | Interrupted
  | {
      readonly type: 'retrieved';
      readonly documents: readonly RetrievedDocument[];
      readonly interrupted?: Interruption;
    }
  | { readonly type: 'failed'; readonly message: string };

export interface ModelCall {
  readonly closing: boolean;
  /** The position in the prompt before which the call summarizes; absent for any other call. */
  readonly cut?: number;
}

/** A test's choices about the world of a run. Anything left out is uneventful. */
export interface World extends Partial<Pick<Effects, 'segment' | 'observe'>> {
  callModel(state: RunState, call: ModelCall): Promise<ModelEnd>;
  /**
   * Executes calls, and passes each result to `finished`. Returns what interrupted the batch, or
   * null.
   */
  runCalls?(
    state: RunState,
    calls: readonly ToolCall[],
    finished: (id: string, result: RunToolResult) => void,
  ): Promise<Interruption | null>;
  retrieve?(): Promise<RetrievalEnd>;
  /** Returns whether the messages were archived. */
  archive?(): Promise<boolean>;
  refreshAgent?(): Promise<RunConfig | null>;
  /** Only waits are left of a batch. Afterwards, the first one is over. */
  awaitTime?(): Promise<Interruption | null>;
  /** The run waits for people. */
  awaitChange?(action: TimedAction): Promise<Interruption | null>;
  continueAsNew?(): Promise<void>;
}
