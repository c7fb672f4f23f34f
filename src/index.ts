import type { ClientOptions, PerdureClient } from './client/client-types.js';
import type { RunningWorker } from './worker.js';
import type { WorkerOptions } from './worker/options.js';

// Agents
export type { Agent, AgentOptions, CalledAgent } from './agents/agent.js';
export { defineAgent } from './agents/define-agent.js';
export type { GraphParts, NodeFunction, NodeResult } from './agents/graph-parts.js';
export type {
  Decider,
  MayDecide,
  Notice,
  NoticeRequest,
  NotifyFunction,
  NotifyTarget,
  RequestOptions,
} from './agents/requests.js';
export type { AgentOutput, AnswerContract } from './agents/agent-output.js';
export type { NamedPrompt, PromptOptions, PromptTable, PromptTypes } from './agents/prompts.js';
export type { ArtifactsField } from './client/store-artifacts.js';
export type { AttachedArtifact } from './core/input/attached-artifacts.js';
export type { TurnContext } from './core/input/turn-context.js';
export type {
  ArtifactInfo,
  DecideArtifacts,
  DecideFunction,
  DecideInput,
  DecideModel,
  DecideRequest,
  ModelDecision,
} from './agents/decide-function.js';
export type {
  EndedTurn,
  Memory,
  RememberContext,
  Rememberer,
  RememberFunction,
  RememberOptions,
} from './agents/memory.js';
export type {
  FoundDocument,
  RetrieveContext,
  RetrieveFunction,
  RetrieveOptions,
  RetrieveQuery,
  Retriever,
} from './agents/retriever.js';
export { template, type Template, type TemplateValue } from './prompts/template.js';
export { defineConfig, type Config } from './config.js';
export type { AnswerParser, ParseFunction } from './output/parse-output.js';
export type { SuppliedMessage } from './core/input/supplied-messages.js';
export type { AgentTexts } from './core/text/author-texts.js';
export type { Duration } from './core/text/duration.js';
export type { TurnOf, Typed, TypedInput, TypedPrompts } from './core/definition/output-type.js';
export type {
  Compaction,
  LimitName,
  LimitOptions,
  Limits,
  LimitSet,
  LimitSetOptions,
  ModelPrice,
  ModelSettings,
  OnInvalid,
  OnLimit,
  OutputDefinition,
  PromptDefinition,
  Tag,
  TagSet,
  ToolCalls,
  ToolChoice,
} from './core/definition/definition.js';
export type { CatalogEntry, ParentClose } from './core/definition/tool-definition.js';

// Graphs
export * from './graphs/public.js';

// Tools
export { defineTool } from './tools/define-tool.js';
export type { ToolOptions } from './tools/tool-options.js';
export type {
  ApprovalContext,
  ApprovalPredicate,
  CallArtifacts,
  DefinedTool,
  Tool,
  GenerateOptions,
  NodeContext,
  ToolContext,
  ToolReturn,
  UndoContext,
  Verification,
  VerifyContext,
} from './tools/tool.js';
export type { ArtifactResult } from './tools/built-in/artifact.js';
export type { ToolRegistry } from './tools/registry.js';
export { mcpServer, type McpServer } from './mcp/mcp-server.js';
export type {
  HttpServerOptions,
  McpCommonOptions,
  McpServerOptions,
  StdioServerOptions,
} from './mcp/server-options.js';
export type { McpOmission } from './core/definition/definition.js';
export type {
  Effect,
  McpOrigin,
  ToolDefinition,
  ToolKind,
} from './core/definition/tool-definition.js';

// Models
export type {
  FinishReason,
  Model,
  ModelContext,
  ModelDelta,
  ModelReply,
  ModelRequest,
  ModelTool,
  ModelUsage,
  ReplyCall,
  ResponseSchema,
  TokenAlternative,
  TokenLogprob,
} from './models/model.js';
export type { ModelApiName, ModelEntry, ModelFacts, ModelOptions } from './models/model-entry.js';
export type {
  ModelCapabilities,
  ResponseFormat,
  RoleOrder,
  SystemRole,
} from './models/capabilities.js';
export type { OpenAiApiName } from './models/openai/model.js';
export type { RequestParameter } from './models/parameters.js';

// Workers
export type { RunningWorker } from './worker.js';
export type { PluginOptions, SharedWorkerOptions, WorkerOptions } from './worker/options.js';
export type { DeploymentOptions, DeploymentVersion, WorkerBuild } from './worker/deployment.js';
export { perdurePlugin, type PerdurePlugin } from './worker/plugin.js';
export type { LiveOptions } from './live/live-options.js';
export type { LiveLimits } from './live/live-limits.js';

// Storage
export { s3Stores, type S3Options } from './storage/s3-stores.js';
export type { Stores } from './storage/stores.js';
export type { BlobStore } from './storage/blob-store.js';
export type { LockedTool, ToolForm, ToolLock } from './storage/tool-lock.js';
export type { Archive, ArchivedHistory, ArchivedRun } from './storage/archive.js';

// Clients
export type {
  SendOptions,
  ClientOptions,
  PerdureClient,
  RunOptions,
  RunOutcome,
  StartOptions,
} from './client/client-types.js';
export type { DecisionMethods, OpenRequestFilter } from './client/decision-methods.js';
export type { CancelOptions, ControlMethods } from './client/control-methods.js';
export type { ReadMethods } from './client/read-methods.js';
export type {
  MessageInput,
  OutgoingMessage,
  NamedPromptMessage,
  SentPrompt,
} from './client/named-prompts.js';
export type {
  ArgsField,
  InputOf,
  OutputOf,
  PromptName,
  PromptOutput,
  PromptsOf,
  StartPrompt,
} from './core/definition/prompt-types.js';
export type { RunHandle, RunLike } from './client/run-handle.js';
export type { AgentLike, RunSettings } from './updates/run-input.js';
export type { AttachOptions } from './client/attach.js';
export type { ForkOptions } from './client/fork-run.js';
export type { ResultOptions } from './client/result.js';
export type { UpdateOptions } from './updates/execute-update.js';
export type { DecisionOptions } from './updates/control.js';
export type { ActorClaim } from './workflows/messages/definitions.js';
export type { ResolveOptions } from './updates/decide.js';
export type {
  DeliveredMessage,
  RecordedMessage,
  SentMessage,
} from './updates/deliver-or-record.js';
export type { KnownAgent } from './client/known-agents.js';
export type { ListFilter } from './client/list-filter.js';
export type { RunList } from './client/list.js';
export type { OpenRequest } from './client/memo-requests.js';
export type { RequestFilter, RequestList, UnreadableRun } from './client/requests.js';
export type { ReadStatus } from './client/status-below.js';
export type { AllRunsOptions, AllRunsProgress, AllRunsResult } from './client/signal-all.js';
export type { RunRow } from './client/run-row.js';
export type { RunBatch, BatchOptions, BatchResult, BatchTask } from './client/batch.js';
export type { BackfillOptions, ScheduleNote, Schedules } from './client/schedule/methods.js';
export type { ScheduleChanges } from './client/schedule/update.js';
export type { Overlap, ScheduleOptions, ScheduleTimes } from './client/schedule/options.js';
export type {
  Firing,
  RecordedTimes,
  ScheduleDetails,
  ScheduleRow,
} from './client/schedule/view.js';
export type { ConnectionSettings } from './temporal/connection.js';

// Runs and their data
export type { Json, JsonObject } from './core/json.js';
export type { CallOrigin } from './core/calls/idempotency.js';
export type { ForkInput } from './core/input/check-fork.js';
export type { RunInput } from './core/input/input.js';
export type { AnsweredRequest, Ask, AskMode, AskReceipt, RefusedMessage } from './core/inbox.js';
export type {
  FailReason,
  Outcome,
  OutcomeBody,
  OutcomeEnd,
  StopReason,
  Usage,
} from './core/outcome.js';
export type {
  Archived,
  MessageRange,
  RunStatus,
  RunStatusName,
  TranscriptPage,
  TranscriptRange,
} from './core/status.js';
export type { ActionProgress } from './core/plan/progress.js';
export type { BlockedReason } from './core/blocked.js';
export type { AttemptReport } from './core/report.js';
export type { RecordedDecision, ControlDecision } from './core/decisions.js';
export type { EffectiveLimits, ForkPoint, SegmentSize } from './core/state.js';
export type { Predicate, PredicateOperator } from './core/requests/predicate.js';
export type {
  Decision,
  DecisionReceipt,
  Grant,
  RequestedGrant,
  RefusalReason,
} from './core/requests/decision.js';
export type { Deciders } from './core/requests/deciders.js';
export type { DecisionKind, LimitReached, Request, RequestKind } from './core/requests/request.js';
export type { Rule, Verdict } from './core/requests/rules.js';
export type { Undoable, UndoState } from './core/requests/undo.js';
export type {
  RunArtifact,
  CreatedArtifact,
  RequestedCall,
  AssistantMessage,
  Attachment,
  BlobRef,
  CallProblem,
  Message,
  MessagePosition,
  ParsedArguments,
  PromptMessage,
  ProviderItems,
  RefusedPart,
  SafetyCheck,
  ToolCall,
  ToolMessage,
  UserMessage,
} from './core/transcript/messages.js';
export type { TurnLog, TurnRecord } from './history/turn-log.js';
export type { CallPair } from './core/transcript/call-pairs.js';
export type { RunTranscript } from './history/run-transcript.js';
export type { EventsOptions } from './history/follow-events.js';
export type { DurableEvent, DurableStep } from './history/durable-events.js';
export type { TextOptions } from './client/text.js';
export type { StreamOptions } from './live/run-streams.js';
export type { Delta } from './live/delta.js';
export type { AttemptPosition, DeltaEvent, LiveEvent, StreamEvent } from './live/stream-events.js';
export { runToken, type RunTokenOptions } from './live/run-token.js';

// Errors
export {
  DeploymentError,
  IdTakenError,
  InputError,
  LiveOptionsError,
  NoRunError,
  NoScheduleError,
  NoServerError,
  NotDeliveredError,
  PerdureError,
  RefusedError,
  ResultLostError,
  RunTokenError,
  SdkCopiesError,
  UnreadableError,
  type NotDeliveredErrorOptions,
  type PerdureErrorClass,
  type PerdureErrorCode,
  type RefusedErrorOptions,
  type WorkerState,
} from './core/errors.js';
export {
  ArchiveError,
  type ArchiveErrorKind,
  type ArchiveErrorOptions,
} from './storage/archive.js';
export { BlobError, type BlobErrorKind, type BlobErrorOptions } from './storage/blob-store.js';
export {
  ModelError,
  type ModelErrorDetails,
  type ModelErrorKind,
  type ModelErrorOptions,
} from './models/model-error.js';
export { ParseError } from './output/parse-error.js';
export { ToolError } from './tools/tool-error.js';

/**
 * Starts a worker. Resolves when it polls or, with a `deployment`, when its build is the current
 * one. Rejects with an `InputError` (`input`) if an option is invalid, with a `LiveOptionsError`
 * (`live_options`) if it cannot serve live streams with these options, with a `NoServerError`
 * (`no_server`) if no server answers, with a `SdkCopiesError` (`sdk_copies`) if the process has two
 * copies of Temporal's SDK, and with a `DeploymentError` (`deployment`) if the build cannot be made
 * the current one.
 *
 * Importing this function does not load Temporal's native worker; the first call does.
 *
 * @example
 * ```ts
 * import { createWorker, defineAgent, defineConfig } from 'perdure';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'demo' });
 * const worker = await createWorker({ config: defineConfig({ agents: [clerk] }) });
 * process.once('SIGTERM', () => void worker.shutdown());
 * await worker.stopped;
 * ```
 */
export async function createWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { createWorker: create } = await import('./worker.js');
  return await create(options);
}

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
  const { openClient } = await import('./client/create-client.js');
  return await openClient(options);
}
