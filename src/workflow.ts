export { agent } from './workflows/agent.js';
export { probe } from './workflows/probe.js';
export {
  definitionQuery,
  pendingQuery,
  resolveUpdate,
  resumeUpdate,
  statusQuery,
  transcriptQuery,
  type TranscriptRange,
} from './workflows/handles.js';
export type { RunInput } from './core/input.js';
export type { Outcome } from './core/outcome.js';
export type { Pending, RunStatus, TranscriptPage } from './core/status.js';
export type { Resolution } from './core/call-results.js';
