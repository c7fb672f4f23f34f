/** Why a living run stands still; each is mended from outside, none is an end. */
export type BlockedReason = ModelBlock | ToolBlock | PersonBlock | 'storage';

/** What no trying again mends: a person has to decide about a call, by `resolve`. */
export type PersonBlock = 'outcome_unknown' | 'safety_check';

export function needsPerson(reason: BlockedReason): reason is PersonBlock {
  return reason === 'outcome_unknown' || reason === 'safety_check';
}

/** Those that a model call meets. */
export const MODEL_BLOCKS = ['credentials', 'quota', 'model', 'provider'] as const;
export type ModelBlock = (typeof MODEL_BLOCKS)[number];

/** Those that a tool call meets; `credentials`: an MCP server refuses the key that it was given. */
export const TOOL_BLOCKS = ['tool_missing', 'tool_changed', 'credentials'] as const;
export type ToolBlock = (typeof TOOL_BLOCKS)[number];
