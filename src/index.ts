import type { ClientOptions, PerdureClient } from './client/client-types.js';
import type { RunningWorker } from './worker.js';
import type { WorkerOptions } from './worker/options.js';

// Agents
export type {
  Agent,
  AgentOptions,
  CalledAgent,
  GraphParts,
  NodeFunction,
  NodeResult,
  ArtifactInfo,
  DecideArtifacts,
  DecideFunction,
  DecideInput,
  DecideModel,
  DecideRequest,
  ModelDecision,
} from './agents/agent.js';
export { defineAgent } from './agents/define-agent.js';
export type {
  Decider,
  MayDecide,
  Notice,
  NoticeRequest,
  NotifyFunction,
  NotifyTarget,
  RequestOptions,
  AgentOutput,
  AnswerContract,
  EndedTurn,
  Memory,
  RememberContext,
  Rememberer,
  RememberFunction,
  RememberOptions,
  FoundDocument,
  RetrieveContext,
  RetrieveFunction,
  RetrieveOptions,
  RetrieveQuery,
  Retriever,
} from './agents/agent-parts.js';
export type { NamedPrompt, PromptOptions, PromptTable, PromptTypes } from './agents/prompts.js';
export type {
  ArtifactsField,
  MessageInput,
  OutgoingMessage,
  NamedPromptMessage,
  SentPrompt,
  AttachOptions,
} from './client/attach.js';
export type { AttachedArtifact, TurnContext } from './core/input/turn-context.js';
export { template, type Template, type TemplateValue } from './prompts/template.js';
export { defineConfig, type Config } from './config.js';
export type { AnswerParser, ParseFunction } from './output/parse-output.js';
export type {
  SuppliedMessage,
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
export type {
  AgentTexts,
  TurnOf,
  Typed,
  TypedInput,
  TypedPrompts,
  Compaction,
  BudgetName,
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
  McpOmission,
  ArgsField,
  InputOf,
  OutputOf,
  PromptName,
  PromptOutput,
  PromptsOf,
  StartPrompt,
} from './core/definition/definition.js';
export type { Duration } from './core/text/text.js';
export type {
  CatalogEntry,
  ParentClose,
  Effect,
  McpOrigin,
  ToolDefinition,
  ToolKind,
} from './core/definition/tool-definition.js';

// Graphs
export * from './graphs/plan-and-execute.js';

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
  ToolRegistry,
} from './tools/tool.js';
export type { ArtifactResult } from './tools/built-in/artifact.js';
export { mcpServer, type McpServer } from './mcp/mcp-server.js';
export type {
  HttpServerOptions,
  McpCommonOptions,
  McpServerOptions,
  StdioServerOptions,
} from './mcp/mcp-server.js';
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
  RequestParameter,
} from './models/model.js';
export type { ModelApiName, ModelEntry, ModelFacts, ModelOptions } from './models/model-entry.js';
export type {
  ModelCapabilities,
  ResponseFormat,
  RoleOrder,
  SystemRole,
} from './models/known-models.js';
export type { OpenAiApiName } from './models/openai/model.js';
// Workers
export type { RunningWorker } from './worker.js';
export type { PluginOptions, SharedWorkerOptions, WorkerOptions } from './worker/options.js';
export type { DeploymentOptions, DeploymentVersion, WorkerBuild } from './worker/deployment.js';
export { perdurePlugin, type PerdurePlugin } from './worker/plugin.js';
export type { LiveOptions, LiveLimits } from './live/live-options.js';
// Storage
export { s3Stores, type S3Options } from './storage/s3-stores.js';
export type { Stores, LockedTool, ToolForm, ToolLock } from './storage/tool-lock.js';
export type { BlobStore, Archive, ArchivedHistory, ArchivedRun } from './storage/blob-store.js';
// Clients
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
export type {
  OpenRequest,
  RequestFilter,
  RequestList,
  UnreadableRun,
  ReadStatus,
} from './client/requests.js';
export type { RunRow } from './client/run-row.js';
export type { RunBatch, BatchOptions, BatchResult, BatchTask } from './client/batch.js';
export type {
  BackfillOptions,
  ScheduleNote,
  Schedules,
  ScheduleChanges,
} from './client/schedule/methods.js';
export type { Overlap, ScheduleOptions, ScheduleTimes } from './client/schedule/options.js';
export type {
  Firing,
  RecordedTimes,
  ScheduleDetails,
  ScheduleRow,
} from './client/schedule/view.js';
export type { ConnectionSettings } from './temporal/connection.js';

// Runs and their data
export type { Json, JsonObject } from './core/text/json.js';
export type { CallOrigin } from './core/transcript/call-result.js';
export type { NodeVisit } from './core/definition/graph-definition.js';
export type { ForkInput } from './core/input/fork-input.js';
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
  AttemptReport,
} from './core/transcript/outcome.js';
export type {
  Archived,
  MessageRange,
  RunStatus,
  RunPhase,
  RunStatusName,
  TranscriptPage,
  TranscriptRange,
} from './core/state/status.js';
export type { ActionProgress } from './core/run/details.js';
export type {
  RecordedDecision,
  ControlDecision,
  EffectiveLimits,
  ForkPoint,
  SegmentSize,
} from './core/state/state.js';
export type { Predicate, PredicateOperator } from './core/definition/predicate.js';
export type {
  Decision,
  DecisionReceipt,
  Grant,
  RequestedGrant,
  RefusalReason,
  DecisionKind,
  LimitReached,
  Request,
  RequestKind,
} from './core/transcript/request.js';
export type { Deciders, Rule, Verdict } from './core/definition/rules.js';
export type { Undoable, UndoState } from './core/state/work.js';
export type { TurnLog, TurnRecord, RunTranscript } from './history/run-transcript.js';
export type { CallPair } from './core/transcript/transcript.js';
export type { EventsOptions } from './history/follow-events.js';
export type { DurableEvent, DurableStep } from './history/graph-steps.js';
export type { StreamOptions } from './live/run-streams.js';
export type { Delta } from './live/attempts.js';
export type { AttemptPosition, DeltaEvent, LiveEvent, StreamEvent } from './live/stream.js';
export { runToken, type RunTokenOptions } from './live/live-options.js';

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
  BlobError,
  type BlobErrorKind,
  type BlobErrorOptions,
} from './storage/blob-store.js';
export {
  ModelError,
  type ModelErrorDetails,
  type ModelErrorKind,
  type ModelErrorOptions,
} from './models/model.js';
export { ParseError } from './output/parse-output.js';
export { ToolError } from './tools/errors.js';

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
