import type { BlockedReason } from './blocked.js';
import type { Message } from './messages.js';
import type { Outcome, Usage } from './outcome.js';
import type { AttemptReport } from './report.js';
import type { EffectiveLimits } from './state.js';

export type RunStatusName =
  | 'working'
  | 'waiting_message'
  | 'waiting_approval'
  | 'waiting_time'
  | 'blocked'
  | 'paused'
  | 'done';

/** Something that a person has to settle. */
export interface Pending {
  readonly type: 'outcome_unknown';
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  readonly idempotencyKey: string;
  /** What to type. */
  readonly cure: string;
}

/** The answer of query `status`. */
export interface RunStatus {
  readonly id: string;
  readonly runId: string;
  readonly agent: string;
  readonly status: RunStatusName;
  /** The outcome's reason, or why the run is blocked; null while it works. */
  readonly reason: string | null;
  /** For people: what is wrong and how to mend it, while blocked. */
  readonly message: string | null;
  readonly turn: number;
  readonly step: number;
  readonly limits: EffectiveLimits;
  readonly usage: Usage;
  readonly pending: readonly Pending[];
  readonly doing: string | null;
  /** Failed attempts of model calls, newest last. */
  readonly reports: readonly AttemptReport[];
  readonly outcome: Outcome | null;
}

/** What stands in the memo after each turn; readable without a worker. */
export interface TurnMemo {
  readonly turn: number;
  readonly status: Outcome['status'];
  readonly reason: Outcome['reason'];
}

/** A page of query `transcript`. */
export interface TranscriptPage {
  readonly messages: readonly Message[];
  /** Messages in the whole transcript. */
  readonly total: number;
}

export interface Blocked {
  readonly reason: BlockedReason;
  readonly message: string;
  readonly reports?: readonly AttemptReport[];
}
