/**
 * The reasons that can block a model call; `storage`: a blob that its prompt needs is missing or
 * damaged, or the store is down.
 */
export const MODEL_BLOCKS = ['credentials', 'quota', 'model', 'provider', 'storage'] as const;
export type ModelBlock = (typeof MODEL_BLOCKS)[number];

/** What a tool call meets; `credentials`: an MCP server refuses the key that it was given. */
export const TOOL_BLOCKS = ['tool_missing', 'tool_changed', 'credentials', 'storage'] as const;
export type ToolBlock = (typeof TOOL_BLOCKS)[number];

/** What a run meets before it has begun; `storage`: the store does not take the run's context. */
export const AGENT_BLOCKS = ['agent_missing', 'storage'] as const;
export type AgentBlock = (typeof AGENT_BLOCKS)[number];

/** What no retry fixes: a person has to decide about a call, by `resolve`. */
const PERSON_BLOCKS = ['outcome_unknown', 'safety_check'] as const;
export type PersonBlock = (typeof PERSON_BLOCKS)[number];

export const BLOCKED_REASONS = [
  ...MODEL_BLOCKS,
  ...TOOL_BLOCKS,
  ...AGENT_BLOCKS,
  ...PERSON_BLOCKS,
] as const;

/** Why a living run stands still; each is fixed from outside, none is an end. */
export type BlockedReason = (typeof BLOCKED_REASONS)[number];

export function needsPerson(reason: BlockedReason): reason is PersonBlock {
  return PERSON_BLOCKS.some((known) => known === reason);
}
