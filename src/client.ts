import type { ClientOptions, PerdureClient } from './client/client-types.js';

// Errors
export {
  IdTakenError,
  NoRunError,
  NoScheduleError,
  NoServerError,
  NotDeliveredError,
  RefusedError,
  ResultLostError,
  RunTokenError,
  UnreadableError,
  type NotDeliveredErrorOptions,
  type RefusedErrorOptions,
} from './core/errors.js';

// Types of an agent, for typed calls
export type { AgentTexts, PromptDefinition } from './core/definition/definition.js';
export type {
  TurnOf,
  Typed,
  TypedArgs,
  TypedInput,
  TypedPrompts,
  ArgsField,
  ArgsOf,
  InputOf,
  OutputOf,
  PromptName,
  PromptOutput,
  PromptsOf,
  StartPrompt,
} from './core/definition/agent-types.js';

// Live streams and events
export type { EventsOptions } from './history/follow-events.js';
export type { DurableEvent, DurableStep } from './history/durable-steps.js';
export type { StreamOptions } from './live/run-streams.js';
export type { Delta } from './live/attempts.js';
export type {
  AttemptPosition,
  DeltaEvent,
  LiveEvent,
  NodeDeltaEvent,
  NodeReplyPosition,
  StreamEvent,
} from './live/stream.js';
export { runToken, type RunTokenOptions } from './live/live-options.js';

// Schedules
export type {
  BackfillOptions,
  ScheduleNote,
  Schedules,
  ScheduleChanges,
} from './client/schedule/methods.js';
export type { Overlap, ScheduleOptions, ScheduleTimes } from './client/schedule/options.js';
export type { TriggerResult } from './client/schedule/trigger.js';
export type {
  Firing,
  RecordedTimes,
  ScheduleDetails,
  ScheduleRow,
} from './client/schedule/view.js';

// Audit
export { auditRuns } from './client/audit.js';
export { verifyAudit } from './history/audit.js';
export type { AuditAct, AuditFact } from './history/audit-acts.js';
export type { AuditCheck, AuditEntry } from './history/audit.js';

// Encryption
export type { EncryptionOptions } from './encryption/keyring.js';
export { encryptionCodec } from './encryption/payload-codec.js';

// Clients
export type {
  ArtifactsField,
  MessageInput,
  OutgoingMessage,
  NamedPromptMessage,
  SentPrompt,
  AttachOptions,
} from './client/attach.js';
export type {
  SendOptions,
  ClientOptions,
  PerdureClient,
  RunOptions,
  RunOutcome,
  StartOptions,
} from './client/client-types.js';
export type {
  DecisionMethods,
  OpenRequestFilter,
  CancelOptions,
  ControlMethods,
  RunHandle,
  RunLike,
  AllRunsOptions,
  AllRunsProgress,
  AllRunsResult,
} from './client/control.js';
export type { ReadMethods, TextOptions } from './client/read-methods.js';
export type { AgentLike, RunSettings } from './updates/start.js';
export type { ForkOptions, KnownAgent } from './client/fork-run.js';
export type { ResultOptions } from './client/status.js';
export type { UpdateOptions } from './updates/execute-update.js';
export type { DecisionOptions, ResolveOptions } from './updates/decide.js';
export type { ActorClaim } from './workflows/messages/definitions.js';
export type { DeliveredMessage, RecordedMessage, SentMessage } from './updates/ask.js';
export type { ListFilter } from './client/list-filter.js';
export type { RunList } from './client/list.js';
export type { OpenRequest, RequestFilter, RequestList, UnreadableRun } from './client/requests.js';
export type { BlockedRun, ReadStatus } from './client/below.js';
export type { RunRow } from './client/run-row.js';
export type { RunBatch, BatchOptions, BatchResult, BatchTask } from './client/batch.js';
export type { ConnectionSettings } from './temporal/connection.js';

// Costs
export { readCosts, type CostOptions, type CostRow, type Costs } from './client/costs.js';

// Erasure
export { eraseRuns, type EraseOptions, type Erasure } from './client/erasure/erase-runs.js';
export type { LeftOver } from './client/erasure/perform-erasure.js';
export type { ErasedRun, RefusedRun } from './client/erasure/targets.js';
export type { ErasureCounts, ErasureRecord } from './storage/erasure-log.js';

// Requests and decisions
export type { RecordedDecision, ControlDecision } from './core/state/state.js';
export type {
  Decision,
  DecisionReceipt,
  Grant,
  RequestedGrant,
  RefusalReason,
  DecisionKind,
  ExecutedCall,
  LimitReached,
  Request,
  RequestKind,
} from './core/transcript/request.js';
export type { Undoable, UndoState } from './core/state/undo.js';

// Runs and their data
export type {
  SuppliedMessage,
  RunArtifact,
  CreatedArtifact,
  Message,
  MessagePosition,
} from './core/transcript/messages.js';
export type { BudgetName, LimitName, Limits, LimitSet } from './core/definition/definition.js';
export type { ForkInput } from './core/input/fork-input.js';
export type { ClientTool } from './core/definition/tool-definition.js';
export type { RunInput } from './core/input/input.js';
export type {
  AnsweredRequest,
  Ask,
  AskMode,
  AskReceipt,
  RefusedMessage,
} from './core/input/inbox.js';
export type {
  FailReason,
  Outcome,
  OutcomeBody,
  OutcomeEnd,
  StopReason,
  Usage,
  BlockedReason,
  AttemptFailure,
  AttemptReport,
  Retried,
} from './core/transcript/outcome.js';
export type {
  Archived,
  CancelRequest,
  MessageRange,
  RunStatus,
  RunPhase,
  RunStatusName,
  TranscriptPage,
  TranscriptRange,
  WorkInFlight,
} from './core/state/status.js';
export type { ActionProgress } from './core/run/details.js';
export type { EffectiveLimits, ForkPoint } from './core/state/state.js';
export type { TurnLog, TurnRecord, RunTranscript } from './history/run-transcript.js';
export type { CallPair } from './core/transcript/transcript.js';
export type { WorkerState } from './core/errors.js';

/**
 * Connects to Temporal and returns a client that starts runs, sends them messages and decisions,
 * and reads them. Rejects with a `NoServerError` (`no_server`) if no server answers, with an
 * `InputError` (`input`) for an invalid option, and with a `SdkCopiesError` (`sdk_copies`) if the
 * process has two copies of Temporal's SDK.
 *
 * Importing this function does not load Temporal's client; the first call does.
 *
 * @example
 * ```ts
 * import { createClient } from 'perdure';
 *
 * await using client = await createClient();
 * const run = await client.start('files', { message: 'What is in this folder?' });
 * const { status, answer } = await client.result(run);
 * console.log(status, answer);
 * ```
 */
export async function createClient(options: ClientOptions = {}): Promise<PerdureClient> {
  const [{ openClient }, { withProgram }] = await Promise.all([
    import('./client/create-client.js'),
    import('./core/requests/commands.js'),
  ]);
  return await openClient(options, { runnable: (text) => withProgram(text) });
}
