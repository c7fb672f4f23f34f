// Workflows of perdure, for a workflows file of your own
export { agent } from './workflows/agent.js';
export { probe } from './workflows/probe.js';
export { send, type SendInput } from './workflows/send.js';

// Running agents from a workflow of your own
export { runAgent, type AgentRunInput } from './workflows/run-agent.js';

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
} from './workflows/messages/definitions.js';
export {
  resolveUpdate,
  revokeUpdate,
  undoUpdate,
} from './workflows/messages/request-definitions.js';

// Inputs and answers of a run
export type { AnsweredRequest, Ask, AskReceipt } from './core/inbox.js';
export type { RunInput } from './core/input/input.js';
export type { Outcome } from './core/outcome.js';
export type { MessageRange, RunStatus, TranscriptPage, TranscriptRange } from './core/status.js';
export type { CallResult } from './core/calls/call-result.js';
export type {
  Decision,
  DecisionReceipt,
  Grant,
  RequestedGrant,
  RefusalReason,
} from './core/requests/decision.js';
export type { Request, RequestKind } from './core/requests/request.js';
export type {
  AgentDefinition,
  McpPolicy,
  McpUsed,
  TemplateUsed,
} from './core/definition/definition.js';

// The graph of a run
export type { RunGraph } from './core/graph/draw-run.js';
export type { GraphDefinition } from './core/graph/definition.js';
export type {
  ConfirmedPlan,
  GraphPlace,
  GraphState,
  Interrupted,
  NodeVisits,
  Conversation,
} from './core/graph/graph-state.js';
export type { ActionProgress, GraphView, PlanProgress } from './core/plan/progress.js';
