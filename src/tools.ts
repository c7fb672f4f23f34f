// Tools
export { fileTools, type FileToolsOptions } from './tools/files/file-tools.js';
export {
  today,
  answer,
  type AnswerOptions,
  listArtifacts,
  returnArtifact,
  defaultTools,
} from './tools/built-in/default-tools.js';
export { askPerson, type AskPersonOptions, wait } from './tools/built-in/workflow-tools.js';
// Special results of tools
export {
  artifact,
  type ArtifactOptions,
  type ArtifactResult,
  screenshot,
  type Screenshot,
} from './tools/built-in/artifact.js';

// MCP servers
export type { McpOmission } from './core/definition/definition.js';
export type { McpOrigin } from './core/definition/tool-definition.js';
export {
  mcpServer,
  type McpServer,
  type HttpServerOptions,
  type McpCommonOptions,
  type McpServerOptions,
  type StdioServerOptions,
} from './mcp/mcp-server.js';

// What a tool receives, and what it is
export type { AttachedArtifact, TurnContext } from './core/input/turn-context.js';
export type { ToolCalls } from './core/definition/definition.js';
export type {
  CatalogEntry,
  ParentClose,
  ToolDefinition,
  ToolKind,
} from './core/definition/tool-definition.js';
export type {
  ApprovalContext,
  ApprovalPredicate,
  CallArtifacts,
  GenerateOptions,
  UndoContext,
  Verification,
  VerifyContext,
  ToolRegistry,
} from './tools/tool.js';
export type { CallOrigin } from './core/transcript/call-result.js';
