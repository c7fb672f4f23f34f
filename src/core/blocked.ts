/** Why a living run stands still; each is mended from outside, none is an end. */
export type BlockedReason = ModelBlock | ToolBlock | 'outcome_unknown' | 'storage';

/** Those that a model call meets. */
export const MODEL_BLOCKS = ['credentials', 'quota', 'model', 'provider'] as const;
export type ModelBlock = (typeof MODEL_BLOCKS)[number];

/** Those that a tool call meets; `credentials`: an MCP server refuses the key that it was given. */
export const TOOL_BLOCKS = ['tool_missing', 'tool_changed', 'credentials'] as const;
export type ToolBlock = (typeof TOOL_BLOCKS)[number];
