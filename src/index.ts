export type { Agent, AgentOptions } from './agents/agent.js';
export { defineAgent } from './agents/define-agent.js';
export { defineTool, type ToolOptions } from './tools/define-tool.js';
export { mcpServer, type McpServer, type McpServerOptions } from './mcp/mcp-server.js';
export { ToolError } from './tools/tool-error.js';
export type { CallArtifacts, Tool, ToolContext, Verification } from './tools/tool.js';
export { defineConfig, type Config } from './config.js';
export { ModelError } from './models/model-error.js';
export type { ModelDelta, Model, ModelContext, ModelReply, ModelRequest } from './models/model.js';
export type { ModelEntry, ModelOptions } from './models/model-catalog.js';
export { createWorker } from './worker.js';
export type { RunningWorker, WorkerOptions } from './worker/create-worker.js';
export { perdurePlugin, type PerdurePlugin, type PluginOptions } from './worker/plugin.js';
export { BlobError, type BlobErrorKind, type BlobStore } from './storage/blob-store.js';
export { ArchiveError, type Archive, type ArchiveErrorKind } from './storage/archive.js';
export type { Limits } from './core/definition/definition.js';
export type { Json, JsonObject } from './core/json.js';
export type { Outcome, Usage } from './core/outcome.js';
export type { RunInput } from './core/input/input.js';
export { createClient } from './client.js';
export type {
  AskOptions,
  ClientOptions,
  PerdureClient,
  RunHandle,
  RunLike,
  StartOptions,
} from './client/client-types.js';
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
  type PerdureErrorCode,
  type WorkerSeen,
} from './core/errors.js';
export type { UpdateOptions } from './updates/execute-update.js';
export type {
  RecordedMessage,
  SentMessage,
  DeliveredMessage,
} from './updates/deliver-or-record.js';
export type { DecisionOptions } from './updates/control.js';
export type { AgentLike, RunSettings } from './updates/run-input.js';
export type { ResultOptions } from './client/result.js';
export type { ForkOptions } from './client/fork-run.js';
export type { AttachOptions } from './client/attach.js';
export type { Attachment } from './core/transcript/messages.js';
export type { EventsOptions } from './history/follow-events.js';
export type { DurableEvent, DurableStep } from './history/durable-events.js';
export type { StreamOptions } from './live/run-streams.js';
export type { DeltaEvent, LiveEvent, StreamEvent } from './live/stream-events.js';
export type { LiveOptions } from './live/live-options.js';
export type { LiveLimits } from './live/live-limits.js';
export { runToken, type RunTokenOptions } from './live/run-token.js';
export type { RunTranscript } from './history/run-transcript.js';
export type { Batch, BatchOptions, BatchResult, BatchTask } from './client/batch.js';
export type { BackfillOptions, Schedules } from './client/schedule/schedule.js';
export type { Overlap, ScheduleOptions } from './client/schedule/options.js';
export type { Firing, ScheduleDetails, ScheduleRow } from './client/schedule/view.js';
export type { Ask } from './core/inbox.js';
export type { RunStatus } from './core/status.js';
export { ParseError } from './output/parse-error.js';
export { template, type Template } from './prompts/template.js';
export type { AgentOutput } from './agents/agent-output.js';
export type { DecideFunction, Decision, DecisionInput } from './agents/decide-function.js';
export type {
  FoundDocument,
  RetrieveContext,
  RetrieveFunction,
  RetrieveOptions,
  RetrieveQuery,
} from './agents/retriever.js';
