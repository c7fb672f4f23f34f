// What a program needs for its first agents: definitions, a worker, and a client. Everything else
// is in the entries for one subject: graphs, models, tools, output, worker, client, and testing.

// Agents
export type { Agent, AgentOptions, CalledAgent } from './agents/agent.js';
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
  Compaction,
  LimitOptions,
  LimitSetOptions,
  ModelSettings,
  OnInvalid,
  OnLimit,
  ToolChoice,
} from './core/definition/definition.js';
export type { Predicate, PredicateOperator } from './core/definition/predicate.js';
export type { Deciders, Rule, Verdict } from './core/definition/rules.js';

// Prompts
export {
  template,
  type Template,
  type TemplateArgs,
  type TemplateValue,
} from './prompts/template.js';

// Tools
export type { Effect } from './core/definition/tool-definition.js';
export { mcpServer } from './mcp/mcp-server.js';
export { defineTool } from './tools/define-tool.js';
export type { ToolOptions } from './tools/tool-options.js';
export type { DefinedTool, Tool, ToolContext, ToolReturn } from './tools/tool.js';

// Configuration and data
export { defineConfig, type Config } from './config.js';
export type { Duration } from './core/text/text.js';
export type { Json, JsonObject } from './core/text/json.js';

// Errors
export {
  InputError,
  PerdureError,
  type PerdureErrorClass,
  type PerdureErrorCode,
} from './core/errors.js';
export { ToolError } from './tools/errors.js';

// Workers and clients
export { createWorker, type RunningWorker } from './worker.js';
export { createClient, type PerdureClient } from './client.js';
