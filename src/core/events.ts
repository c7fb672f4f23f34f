import type { RetrievedDocument } from './documents.js';
import type { Forked } from './input/fork.js';
import type { BlobRef } from './transcript/messages.js';
import type { CallResult } from './calls/call-result.js';
import type { Decision } from './decisions.js';
import type { Limits } from './definition/definition.js';
import type { Incoming, RefusedMessage } from './inbox.js';
import type { FailReason, StopReason } from './outcome.js';
import type { RecordedReply } from './reply.js';
import type { Ending, RunConfig } from './state.js';

/** Why work in flight was broken off. */
export type Interruption = 'cancel' | 'cancelTurn' | 'wallMs';

/** What happens to a run. State changes by these and by nothing else. `at` is Unix time in ms. */
export type RunEvent = TurnEvent | PersonEvent | SegmentEvent;

/** The work of a turn. */
export type TurnEvent =
  | { readonly type: 'turn-begun'; readonly at: number }
  /** What people said to the turn under way becomes part of its prompt. */
  | { readonly type: 'messages-joined'; readonly at: number }
  /** What was found for the turn, before its first model call. */
  | {
      readonly type: 'documents-retrieved';
      readonly documents: readonly RetrievedDocument[];
      readonly at: number;
    }
  | { readonly type: 'retrieval-failed'; readonly message: string }
  | { readonly type: 'model-replied'; readonly reply: RecordedReply; readonly at: number }
  | { readonly type: 'model-failed'; readonly reason: FailReason; readonly message: string }
  /** One call of the open batch has its result; the transcript gets it when the batch is complete. */
  | { readonly type: 'call-finished'; readonly result: CallResult }
  /** Nothing of the open batch is in flight any more: where it is complete, its results are said. */
  | { readonly type: 'calls-finished'; readonly at: number }
  /** The waits that are over by now have their results. */
  | { readonly type: 'time-passed'; readonly at: number }
  | { readonly type: 'interrupted'; readonly by: Interruption; readonly at: number }
  | { readonly type: 'closing-begun'; readonly reason: StopReason; readonly at: number }
  | { readonly type: 'limit-ended'; readonly reason: StopReason }
  /** The messages before `cut`, by their place in the prompt, were summarized; null: that failed. */
  | {
      readonly type: 'compacted';
      readonly cut: number;
      readonly reply: RecordedReply | null;
      readonly at: number;
    }
  | { readonly type: 'turn-recorded'; readonly at: number };

/** What people say and decide; may come at any moment, and never disturbs work in flight. */
export type PersonEvent =
  | { readonly type: 'message-received'; readonly message: Incoming }
  /** It came by signal, so nobody waits for the answer: the run's status shows it. */
  | { readonly type: 'message-refused'; readonly refused: RefusedMessage }
  /** Who decided what; the effect of the decision is an event of its own. */
  | { readonly type: 'decided'; readonly decision: Decision }
  | { readonly type: 'ending'; readonly by: Ending }
  | { readonly type: 'paused'; readonly paused: boolean }
  | { readonly type: 'limits-set'; readonly limits: Limits }
  /** A tool of an MCP server may be called in the form that it has now. */
  | { readonly type: 'tool-accepted'; readonly tool: string; readonly definition: string };

/** The run's life beyond its turns. */
export type SegmentEvent =
  | { readonly type: 'agent-loaded'; readonly config: RunConfig }
  /** Before anything is said: the run begins with messages of another one. */
  | ({ readonly type: 'forked' } & Forked)
  /** Null: it could not be had, the run goes on with the one it has. */
  | { readonly type: 'agent-refreshed'; readonly config: RunConfig | null }
  | {
      readonly type: 'messages-archived';
      /** Messages before this one are in the archive now. */
      readonly archived: number;
      /** The oldest `count` messages in memory lie in this blob now. */
      readonly chunk: { readonly blob: BlobRef; readonly count: number } | null;
    }
  | { readonly type: 'segment-begun' };
