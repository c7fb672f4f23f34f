import type { AttemptReport } from './report.js';

/**
 * The reasons that can block a model call. `bad_request`: the provider refuses the request for a
 * reason that is not known to be final. `storage`: a blob that its prompt needs is missing or
 * damaged, or the store is down.
 */
export const MODEL_BLOCKS = [
  'credentials',
  'quota',
  'model',
  'bad_request',
  'provider',
  'storage',
] as const;
export type ModelBlock = (typeof MODEL_BLOCKS)[number];

/** The reasons that can block a tool call. `credentials`: an MCP server refuses its key. */
export const TOOL_BLOCKS = ['tool_missing', 'tool_changed', 'credentials', 'storage'] as const;
export type ToolBlock = (typeof TOOL_BLOCKS)[number];

/** The reasons that can block the work of a graph's node, whose function may call a model. */
export const NODE_BLOCKS = [...new Set([...TOOL_BLOCKS, ...MODEL_BLOCKS])] as const;

/**
 * The reasons that can block a run before it begins. `storage`: the store refuses the run's
 * context.
 */
export const AGENT_BLOCKS = ['agent_missing', 'storage'] as const;
export type AgentBlock = (typeof AGENT_BLOCKS)[number];

/** All reasons that can block a run. */
export const BLOCKED_REASONS = [...MODEL_BLOCKS, ...TOOL_BLOCKS, ...AGENT_BLOCKS] as const;

/** Why a run is blocked. Each reason can be fixed outside the run, which then resumes. */
export type BlockedReason = (typeof BLOCKED_REASONS)[number];

/** Why work is blocked. */
export interface Blocked {
  readonly reason: BlockedReason;
  readonly message: string;
  readonly reports?: readonly AttemptReport[];
  /** For `tool_changed`: the tool's current form, which a person may accept. */
  readonly definition?: string;
}
