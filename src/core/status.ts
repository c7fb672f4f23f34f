import type { BlockedReason } from './blocked.js';
import type { Decision } from './decisions.js';
import type { McpOmission } from './definition/definition.js';
import type { RefusedMessage } from './inbox.js';
import type { Message, SafetyCheck } from './transcript/messages.js';
import type { Outcome, Usage } from './outcome.js';
import type { AttemptReport } from './report.js';
import type { EffectiveLimits, ForkPoint, RunState } from './state.js';
import type { PromptChunk } from './transcript/transcript.js';

export type RunStatusName =
  | 'working'
  | 'waiting_message'
  | 'waiting_approval'
  | 'waiting_time'
  | 'blocked'
  | 'paused'
  | 'done';

/** Something that a person has to settle. */
export type Pending = UnknownPending | SafetyPending;

/** Nobody knows whether the call took effect. */
export interface UnknownPending {
  readonly type: 'outcome_unknown';
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  readonly idempotencyKey: string;
  /** What to type. */
  readonly cure: string;
}

/** The provider wants a person to look before the call is executed. */
export interface SafetyPending {
  readonly type: 'safety_check';
  readonly call: string;
  readonly tool: string;
  readonly arguments: string;
  /** In the provider's words. */
  readonly checks: readonly SafetyCheck[];
  /** It has not gone anywhere. */
  readonly idempotencyKey?: undefined;
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
  readonly segments: number;
  /** Messages that wait for their turn. */
  readonly queued: number;
  readonly limits: EffectiveLimits;
  readonly usage: Usage;
  readonly pending: readonly Pending[];
  readonly doing: string | null;
  /** Failed attempts of model calls, newest last. */
  readonly reports: readonly AttemptReport[];
  readonly outcome: Outcome | null;
  /** The run began with the messages before number `at` of another one. */
  readonly forkedFrom?: ForkPoint;
  /** MCP servers that could not be had at the start, and that the run does without. */
  readonly left?: readonly McpOmission[];
  /** The newest messages that came by signal, while no worker was there, and were refused when one came. */
  readonly refused?: readonly RefusedMessage[];
  /** The newest decisions of people: who did what, as far as they said who they are. */
  readonly decisions?: readonly Decision[];
}

/** What a status shows of people, beside their messages; nothing where there is nothing to show. */
export function decidedByPeople({
  inbox: { refused },
  decisions,
}: Pick<RunState, 'inbox' | 'decisions'>): Pick<RunStatus, 'refused' | 'decisions'> {
  return { ...(refused && { refused }), ...(decisions && { decisions }) };
}

/** What stands in the memo after each turn; readable without a worker. */
export interface TurnMemo {
  readonly turn: number;
  readonly status: Outcome['status'];
  readonly reason: Outcome['reason'];
  /** Unix time in ms; only where the run has more segments than one. */
  readonly startedAt?: number;
}

/** A page of query `transcript`. */
export interface TranscriptPage {
  readonly messages: readonly Message[];
  /** Everything that was said in the run; earlier segments have what is not here. */
  readonly total: number;
}

/** A page of query `prompt`: for workers that rebuild what the model sees. */
export interface PromptPage {
  /** Of the whole prompt; their messages stand before all others. */
  readonly chunks: readonly PromptChunk[];
  /** The place in the prompt of the first message that lies in no chunk. */
  readonly start: number;
  readonly messages: readonly Message[];
}

export interface Blocked {
  readonly reason: BlockedReason;
  readonly message: string;
  readonly reports?: readonly AttemptReport[];
  /** Of a tool that has changed: its form now, which a person may accept. */
  readonly definition?: string;
}
