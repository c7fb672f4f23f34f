export { defineAgent, type Agent, type AgentOptions } from './agents/define-agent.js';
export { fileTools, type FileToolsOptions } from './tools/files/file-tools.js';
export { defineTool, type ToolOptions } from './tools/define-tool.js';
export { mcpServer, type McpServer, type McpServerOptions } from './mcp/mcp-server.js';
export { today } from './tools/today.js';
export { wait } from './tools/wait.js';
export { artefact, type Artefact, type ArtefactOptions } from './tools/artefact.js';
export { screenshot, type Screenshot } from './tools/screenshot.js';
export { answer, type AnswerOptions } from './tools/answer.js';
export { listArtefacts } from './tools/list-artefacts.js';
export { returnArtefact } from './tools/return-artefact.js';
export { defaultTools } from './tools/default-tools.js';
export { ToolError } from './tools/tool-error.js';
export type { CallArtefacts, Tool, ToolContext, Verification } from './tools/tool.js';
export { defineConfig, type Config } from './config.js';
export { ModelError } from './models/model-error.js';
export type { Delta, Model, ModelContext, ModelReply, ModelRequest } from './models/model.js';
export type { ModelEntry, ModelOptions } from './models/catalog.js';
export { createWorker } from './create-worker.js';
export type { RunningWorker, WorkerOptions } from './worker.js';
export { perdure, type PerdurePlugin, type PluginOptions } from './plugin.js';
export type { BlobStore } from './blobs/blob-store.js';
export type { Archive } from './archive/archive.js';
export type { Limits } from './core/definition.js';
export type { Json, JsonObject } from './core/json.js';
export type { Outcome, Usage } from './core/outcome.js';
export type { RunInput } from './core/input.js';
export { createClient } from './client.js';
export type {
  AskOptions,
  ClientOptions,
  PerdureClient,
  RunHandle,
  RunLike,
  StartOptions,
} from './client/client-types.js';
export { UndecidedError, type Delivery, type WorkerSeen } from './client/undecided.js';
export type { Patience } from './client/answered.js';
export type { RecordedMessage, SentMessage, TakenMessage } from './client/ask-recorded.js';
export type { DecisionOptions } from './client/control.js';
export type { AgentLike, RunSettings } from './client/run-input.js';
export type { ResultOptions } from './client/result.js';
export type { ForkOptions } from './client/fork-run.js';
export type { AttachOptions } from './client/attach.js';
export type { Attachment } from './core/messages.js';
export type { EventsOptions } from './client/follow-events.js';
export type { DurableEvent, DurableStep } from './client/run-events.js';
export type { StreamOptions } from './live/feeds.js';
export type { DeltaEvent, LiveEvent, StreamEvent } from './live/stream-events.js';
export type { LiveOptions } from './live/live-options.js';
export type { LiveLimits } from './live/live-limits.js';
export { runToken, type RunTokenOptions } from './live/run-token.js';
export type { RunTranscript } from './client/run-transcript.js';
export type { Batch, BatchOptions, BatchResult, BatchTask } from './client/batch.js';
export type { BackfillOptions, Schedules } from './client/schedule.js';
export type { Overlap, ScheduleOptions } from './client/schedule-options.js';
export type { Firing, ScheduleDetails, ScheduleRow } from './client/schedule-view.js';
export type { Ask } from './core/inbox.js';
export type { RunStatus } from './core/status.js';
export { ParseError } from './output/parse-error.js';
export { tags, type TagAnswer, type TagOptions } from './output/tags.js';
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
export { binaryClassify, classify, type Classes } from './output/classify.js';
export type { Classification } from './classify/distribution.js';
