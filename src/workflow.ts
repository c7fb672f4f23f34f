export { agent } from './workflows/agent.js';
export { runAgent } from './workflows/run-agent.js';
export { probe } from './workflows/probe.js';
export { send, type SendInput } from './workflows/send.js';
export {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  definitionQuery,
  outcomeUpdate,
  pauseUpdate,
  pendingQuery,
  resolveUpdate,
  resumeUpdate,
  setLimitsUpdate,
  statusQuery,
  transcriptQuery,
  type TranscriptRange,
  type ActorClaim,
  type TurnOutcome,
} from './workflows/messages.js';
export type { Ask, AskReceipt } from './core/inbox.js';
export type { RunInput } from './core/input/input.js';
export type { Outcome } from './core/outcome.js';
export type { Pending, RunStatus, TranscriptPage } from './core/status.js';
export type { Resolution } from './core/calls/call-result.js';
export type {
  AgentDefinition,
  McpPolicy,
  McpUsed,
  TemplateUsed,
} from './core/definition/definition.js';
