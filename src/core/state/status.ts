import type { McpOmission } from '../definition/definition.js';
import { type RefusedMessage, countRefusals } from '../input/inbox.js';
import type { Message } from '../transcript/messages.js';
import type { AttemptFailure, AttemptReport, Outcome, Usage } from '../transcript/outcome.js';
import type { Grant, Request } from '../transcript/request.js';
import type { PromptChunk } from '../transcript/transcript.js';
import { countDecisions } from './decisions.js';
import type { EffectiveLimits, ForkPoint, RecordedDecision, RunState } from './state.js';
import type { Undoable } from './undo.js';

/** The statuses of a run that continues, with their meanings. */
const OPEN_STATUSES = {
  working: 'it calls a model or tools, is about to, or is about to end',
  waiting_message: 'an open run waits for its next message',
  waiting_decision: 'it waits for a decision of a person',
  waiting_time: 'it waits until a time; a message wakes it',
  blocked: 'it waits until something outside it is fixed',
  paused: 'it waits until it is resumed',
} as const;

/**
 * The statuses of a run, with their meanings: the one word for each state in lists, in the status,
 * on the live line, in JSON, over MCP, and in docs/command.md. A run that has ended has the status
 * of its outcome.
 */
export const RUN_STATUSES = {
  ...OPEN_STATUSES,
  completed: 'it has ended with an answer, or was closed',
  stopped: 'a limit, or a person at a limit, has ended it',
  cancelled: 'it was canceled',
  failed: 'it has ended with an error, or was ended from outside',
  unknown: 'the server has deleted it, and the archive does not have its end',
} as const satisfies Readonly<
  Record<keyof typeof OPEN_STATUSES | Outcome['status'] | 'unknown', string>
>;

/** What a run is doing, or how it has ended, as lists and people see it. */
export type RunStatusName = keyof typeof RUN_STATUSES;

/** What a run is doing; `done` after its end, whose kind is the status of its outcome. */
export type RunPhase = keyof typeof OPEN_STATUSES | 'done';

/** Returns the one word for the state of a run: after its end, the status of its outcome. */
export function statusName({
  status,
  outcome,
}: {
  readonly status: RunPhase;
  readonly outcome: { readonly status: Outcome['status'] } | null;
}): RunStatusName {
  return status === 'done' ? (outcome?.status ?? 'unknown') : status;
}

/** Whether a run with this status continues. */
export function isOpenStatus(status: string): status is keyof typeof OPEN_STATUSES {
  return Object.hasOwn(OPEN_STATUSES, status);
}

/** The answer of query `status`. */
export interface RunStatus {
  readonly id: string;
  readonly runId: string;
  /**
   * Id of the newest event in the history of segment `runId` that the status includes. In the
   * query's answer, it is the start of the newest workflow task that the run has processed. The
   * status then also includes the run's actions in that task, such as accepting an update or
   * scheduling an activity.
   *
   * The server keeps no trace of a workflow task in which the run only refused updates, and gives
   * its event ids to later events. After a refusal, look for the newest completed task that starts
   * at or before this id.
   */
  readonly historyLength: number;
  readonly agent: string;
  /** For whom the run works; absent without a tenant. */
  readonly tenant?: string;
  /** The id that the caller chose, if `id` is its hash (`hashIds` of `encryption`). */
  readonly givenId?: string;
  /** The tenant that the caller named, if `tenant` is its hash. */
  readonly givenTenant?: string;
  /** What the run is doing; after its end `done`, and `outcome.status` says how it ended. */
  readonly status: RunPhase;
  /** Present if the run is paused, also while `status` says what else it waits for. */
  readonly paused?: true;
  /** The outcome's reason, or why the run is blocked; null while it is working. */
  readonly reason: string | null;
  /** For people: the problem and the fix; null if there is none. */
  readonly message: string | null;
  readonly turn: number;
  /** The steps of the turn, as its outcome counts them. In a graph, the limit `steps` counts fewer. */
  readonly step: number;
  readonly segments: number;
  /** Number of messages waiting for their turn. */
  readonly queued: number;
  readonly limits: EffectiveLimits;
  readonly usage: Usage;
  /** The open requests, oldest first. */
  readonly pending: readonly Request[];
  /** Approvals that hold for later calls. */
  readonly grants?: readonly Grant[];
  /**
   * The calls that can be undone, or whose undo was tried, newest last. After the end of a run, only
   * the latter: a run that has ended undoes no call.
   */
  readonly undoable?: readonly Undoable[];
  /** The work in progress, for people; null if there is none. */
  readonly doing: string | null;
  /** The calls and the model call that workers have, for programs. Absent if none; a query omits it. */
  readonly inFlight?: readonly WorkInFlight[];
  /** Failed attempts at model calls, newest last. */
  readonly reports: readonly AttemptReport[];
  readonly outcome: Outcome | null;
  /** The place in another run at which this run was forked. */
  readonly forkedFrom?: ForkPoint;
  /** MCP servers that were not available at the start, so the run works without them. */
  readonly left?: readonly McpOmission[];
  /** The newest messages that came by signal and were refused, oldest first. */
  readonly refused?: readonly RefusedMessage[];
  /** Number of all messages that came by signal and were refused; absent if none. */
  readonly refusedTotal?: number;
  /** The newest decisions of people, oldest first. */
  readonly decisions?: readonly RecordedDecision[];
  /** Number of all decisions of people; absent if none. */
  readonly decisionsTotal?: number;
  /** Present once it is requested that the run be canceled. A query omits it. */
  readonly cancel?: CancelRequest;
  /** Present if the server has deleted the run, so the status comes from the archive. */
  readonly archived?: Archived;
}

/** A request to cancel a run as a whole, as the server has recorded it. */
export interface CancelRequest {
  /** Unix time in ms. */
  readonly at: number;
  /** Who requested it: a claim of the caller, or the run or the client that did; absent if unknown. */
  readonly by?: string;
}

/** A call or a model call that has not ended, as the server shows it. Times are Unix time in ms. */
export interface WorkInFlight {
  /** The id of the call, or `model`. */
  readonly on: string;
  /** When the run scheduled it. */
  readonly since: number;
  /** The number of the current attempt, from 1. */
  readonly attempt: number;
  /** When a worker began this attempt; null if none has. */
  readonly startedAt: number | null;
  /** When workers may begin this attempt; in the future during the delay before a retry. */
  readonly dueAt: number;
  /** The known failed attempts, oldest first. */
  readonly failures: readonly AttemptFailure[];
}

/** The extent of the archive's data about a run that the server has deleted. */
export interface Archived {
  /** Unix time in ms of the newest archived event. Later events are unknown. */
  readonly at: number;
  /**
   * Whether the archive includes the end of the run. If not, the reason is `unknown` and the
   * outcome is null.
   */
  readonly ended: boolean;
}

/**
 * Returns the part of a status that shows refused messages and decisions. Empty lists are absent.
 */
export function decidedByPeople(
  state: Pick<RunState, 'inbox' | 'decisions' | 'decisionsTotal'>,
): Pick<RunStatus, 'refused' | 'refusedTotal' | 'decisions' | 'decisionsTotal'> {
  const { inbox, decisions } = state;
  return {
    ...(inbox.refused && { refused: inbox.refused, refusedTotal: countRefusals(inbox) }),
    ...(decisions && { decisions, decisionsTotal: countDecisions(state) }),
  };
}

/** The memo after each turn. It can be read without a worker. */
export interface TurnMemo {
  readonly turn: number;
  readonly status: Outcome['status'];
  readonly reason: Outcome['reason'];
}

/** A range of message numbers, from 0. */
export interface MessageRange {
  /** Number of the first message; default: 0. */
  readonly from?: number | undefined;
  /** Number of the first message after the range; default: the end. */
  readonly to?: number | undefined;
}

/** Which messages of a run to read. */
export interface TranscriptRange extends MessageRange {
  /**
   * Whether to include side branches: refused answers, and the messages to the model about them;
   * default false. A query has only those of the current segment.
   */
  readonly side?: boolean | undefined;
}

/** A page of query `transcript`. */
export interface TranscriptPage {
  readonly messages: readonly Message[];
  /** Number of all messages of the run, including those of earlier segments. */
  readonly total: number;
}

/** A page of query `prompt`, for workers that rebuild the prompt. */
export interface PromptPage {
  /** All chunks of the prompt; their messages come before all others. */
  readonly chunks: readonly PromptChunk[];
  /** The place in the prompt of the first message that is not in a chunk. */
  readonly start: number;
  readonly messages: readonly Message[];
}
