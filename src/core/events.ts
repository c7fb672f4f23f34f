import type { CallResult } from './calls.js';
import type { FailReason, StopReason } from './outcome.js';
import type { RecordedReply } from './reply.js';

/** Why work in flight was broken off. */
export type Interruption = 'cancel' | 'wallMs';

/** What happens to a run. State changes by these and by nothing else. `at` is Unix time in ms. */
export type RunEvent =
  | { readonly type: 'message-received'; readonly text: string; readonly at: number }
  | { readonly type: 'model-replied'; readonly reply: RecordedReply; readonly at: number }
  | {
      readonly type: 'model-failed';
      readonly reason: FailReason;
      readonly message: string;
    }
  | {
      readonly type: 'calls-finished';
      readonly results: readonly CallResult[];
      readonly at: number;
    }
  | {
      readonly type: 'interrupted';
      readonly by: Interruption;
      /** Of the calls that had ended by then. */
      readonly results: readonly CallResult[];
      readonly at: number;
    }
  | { readonly type: 'closing-begun'; readonly reason: StopReason; readonly at: number }
  | { readonly type: 'limit-ended'; readonly reason: StopReason };
