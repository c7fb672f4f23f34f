// Models
export type { ModelPrice } from './core/definition/definition.js';
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
export type {
  ModelApiName,
  ModelEntry,
  ModelFacts,
  ModelOptions,
  ModelRate,
} from './models/model-entry.js';
export type {
  ModelCapabilities,
  ResponseFormat,
  RoleOrder,
  SystemRole,
} from './models/known-models.js';
export type { OpenAiApiName } from './models/openai/model.js';

// Messages to and from a model
export type {
  RequestedCall,
  AssistantMessage,
  Attachment,
  BlobRef,
  CallProblem,
  ParsedArguments,
  PromptMessage,
  ProviderItems,
  RefusedPart,
  SafetyCheck,
  ToolCall,
  ToolMessage,
  UserMessage,
} from './core/transcript/messages.js';

// Functions in place of a model
export type {
  ArtifactInfo,
  DecideArtifacts,
  DecideFunction,
  DecideInput,
  DecideModel,
  DecideRequest,
  ModelDecision,
} from './agents/agent.js';

// Errors
export {
  ModelError,
  type ModelErrorDetails,
  type ModelErrorKind,
  type ModelErrorOptions,
} from './models/model.js';
