// Workflows of perdure, for a workflows file of your own
export { agent } from './workflows/agent.js';
export { budget, rate } from './workflows/shared-limits.js';
export { probe, send, type SendInput } from './workflows/send.js';
// Running agents from a workflow of your own
export { runAgent, type AgentRunInput } from './workflows/calls/run-child-once.js';

// Messages to a run: queries, updates, and signals
export {
  artifactsQuery,
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  definitionQuery,
  graphQuery,
  messageSignal,
  outcomeUpdate,
  pauseSignal,
  pauseUpdate,
  pendingQuery,
  resumeSignal,
  resumeUpdate,
  setLimitsUpdate,
  statusQuery,
  transcriptQuery,
  type ActorClaim,
  type TurnOutcome,
  resolveUpdate,
  revokeUpdate,
  undoUpdate,
} from './workflows/messages/definitions.js';
// Inputs and answers of a run
export type { AnsweredRequest, Ask, AskReceipt } from './core/input/inbox.js';
export type { ClientTool } from './core/definition/tool-definition.js';
export type { RunInput } from './core/input/input.js';
export type { Outcome } from './core/transcript/outcome.js';
export type {
  MessageRange,
  RunStatus,
  TranscriptPage,
  TranscriptRange,
} from './core/state/status.js';
export type { CallResult } from './core/transcript/call-result.js';
export type {
  Decision,
  DecisionReceipt,
  Grant,
  RequestedGrant,
  RefusalReason,
  Request,
  RequestKind,
} from './core/transcript/request.js';
export type {
  AgentDefinition,
  CallerTools,
  McpPolicy,
  McpUsed,
  TemplateUsed,
} from './core/definition/definition.js';

// The graph of a run
export type { RunGraph } from './core/graph/describe.js';
export type { GraphDefinition } from './core/definition/graph-definition.js';
export type {
  ConfirmedPlan,
  GraphPlace,
  GraphState,
  Interrupted,
  NodeVisits,
  Conversation,
} from './core/state/state.js';
export type { ActionProgress, GraphView, PlanProgress } from './core/run/details.js';
