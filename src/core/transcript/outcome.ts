import { LIMIT_NAMES, type ModelPrice } from '../definition/definition.js';
import type { Json } from '../text/json.js';
import type { BlobRef, ProviderItems, RequestedCall } from './messages.js';

export const COMPLETE_REASONS = ['answer', 'tool', 'closed'] as const;

export const STOP_REASONS = [...LIMIT_NAMES, 'no_progress', 'denied'] as const;
/**
 * Why a turn was stopped: by a limit, by `no_progress` if it repeated itself or failed step after step, or
 * by `denied` if people denied its calls three times in a row.
 */
export type StopReason = (typeof STOP_REASONS)[number];

export const FAIL_REASONS = [
  'invalid_output',
  'refused',
  'filtered',
  'truncated',
  'context_too_long',
  'limit',
  'input',
  'error',
  'terminated',
  'timed_out',
] as const;
/**
 * Why a turn failed: its output stayed invalid, the provider refused or filtered the reply, the reply was cut
 * off, the prompt outgrew the model's context, a limit was reached with `onLimit: 'fail'`, the input was
 * invalid, or an error occurred, which `error` of the outcome describes. `terminated` and `timed_out`: Temporal
 * ended the run.
 */
export type FailReason = (typeof FAIL_REASONS)[number];

/** How a turn ended, and why. */
export type OutcomeEnd =
  | { readonly status: 'completed'; readonly reason: (typeof COMPLETE_REASONS)[number] }
  | { readonly status: 'stopped'; readonly reason: StopReason }
  | { readonly status: 'cancelled'; readonly reason: 'cancelled' }
  | { readonly status: 'failed'; readonly reason: FailReason };

/** Tokens and money. `costUsd` is null if a price is unknown. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** A part of `inputTokens`: those written to a provider's cache; absent if there are none. */
  readonly cacheWriteTokens?: number;
  /** A part of `outputTokens`; absent if no provider reported any. */
  readonly reasoningTokens?: number;
  readonly costUsd: number | null;
  /** At least one reply came without usage, so the counts are estimated. */
  readonly estimated?: true;
}

/** The fields of an outcome other than status and reason. */
export interface OutcomeBody<Output = Json> {
  /** The answer, or the best text available; null if there is none. */
  readonly answer: string | null;
  /** The whole answer if it is too large for the history; `answer` is then its head and tail. */
  readonly blob?: BlobRef;
  /** The answer as the agent's `output` defines it; null if there is none. */
  readonly output: Output | null;
  /** Number of deciding model calls, without closing calls. */
  readonly steps: number;
  /** Number of executed tool calls. */
  readonly toolCalls: number;
  readonly usage: Usage;
  readonly segments: number;
  /** What went wrong, for people; only on `failed`. */
  readonly error?: string;
  /** Hash of the template from which the instructions were rendered. */
  readonly template?: string;
  /** The problems with `output` if it is a best effort. */
  readonly issues?: readonly string[];
  /**
   * What the storage could not keep of results whose side effects had happened, for people; absent
   * if everything was stored.
   */
  readonly lost?: readonly string[];
  /** The limit for reason `limit`. */
  readonly limit?: StopReason;
}

/** The outcome of a turn or a run. */
export type Outcome<Output = Json> = OutcomeEnd & OutcomeBody<Output>;

/**
 * The type of a report on a result that could not be stored after the work was done. Its loss is
 * also part of the turn's outcome.
 */
export const STORAGE_LOST = 'storage_lost';

/**
 * A report on one failed attempt at a model call, or on a result that could not be stored, for
 * operators. It has no request bodies or keys.
 */
export interface AttemptReport {
  /** A short name such as `rate_limit`, `http_502`, `connection_reset`, or `bad_json`. */
  readonly type: string;
  readonly status?: number;
  /** Number of the attempt in its activity, from 1. */
  readonly attempt: number;
  /** Milliseconds until the next attempt; 0 if none follows. */
  readonly waitMs: number;
  /** The provider's id of the request, for its support team. */
  readonly requestId?: string;
  /** When the attempt failed, Unix time in ms. */
  readonly at: number;
  /** At most 300 characters. */
  readonly message: string;
}

/** A failed attempt at a call or at a model call, as far as the server has recorded it. */
export interface AttemptFailure {
  /** Its number, from 1. */
  readonly attempt: number;
  /** When it failed, Unix time in ms; null if the server did not record it. */
  readonly at: number | null;
  /** A short name such as `rate_limit` or `timeout`; absent if there is none. */
  readonly type?: string;
  /** At most 300 characters. */
  readonly message: string;
}

/** The attempts at a call or at a model call of which the first one failed. */
export interface Retried {
  /** All of them, with the one that succeeded. */
  readonly attempts: number;
  /** The known ones, oldest first. Of a call that was retried in a row, the server keeps the last. */
  readonly failures: readonly AttemptFailure[];
}

/** The recorded tokens of one model call. */
export interface ReplyUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** A part of `inputTokens`: those written to the provider's cache; absent if there are none. */
  readonly cacheWriteTokens?: number;
  /** A part of `outputTokens`; absent if the provider reported none. */
  readonly reasoningTokens?: number;
  /** US dollars, as the provider reported them. They count if the model has no known price. */
  readonly costUsd?: number;
  /** The provider reported no usage, so the counts are estimated from the texts. */
  readonly estimated?: true;
}

/**
 * An answer read under the agent's `output`. `problem` is for the model: the place, the fault, and
 * the fix.
 */
export type ParsedAnswer =
  | { readonly ok: true; readonly output: Json }
  /** `output`: the part of the answer that could be read. */
  | { readonly ok: false; readonly problem: string; readonly output?: Json };

/** A model that replied in place of the agent's first one. */
export interface FallbackModel {
  readonly model: string;
  /** Null if it is unknown. */
  readonly price: ModelPrice | null;
}

/** A model's reply, as the history records it. No other event contains this message. */
export interface RecordedReply {
  readonly text: string;
  readonly blob?: BlobRef;
  readonly calls?: readonly RequestedCall[];
  readonly provider?: ProviderItems;
  /**
   * The text read under the agent's `output`; absent if the agent has none, or if this is not an
   * answer.
   */
  readonly parsed?: ParsedAnswer;
  readonly finish: 'stop' | 'calls' | 'length' | 'filtered' | 'refused';
  readonly usage: ReplyUsage;
  readonly requestId?: string;
  /** The model that replied because the provider of the agent's own failed; absent: its own. */
  readonly fallback?: FallbackModel;
  /** The model calls of a decision function; `usage` is their sum. Absent if it made none. */
  readonly decided?: {
    readonly modelCalls: number;
    /** The tokens of the longest prompt. */
    readonly promptTokens: number;
  };
  /** Parameters that the server refused in this call; the next calls omit them. */
  readonly dropped?: readonly string[];
  /** The span of the call as a W3C `traceparent`, if its tool calls are traced below it. */
  readonly span?: string;
  /** The failed attempts before this one; absent if there were none. */
  readonly reports?: readonly AttemptReport[];
}

/** Returns the assistant message of a reply, without its calls. */
export function toAssistantMessage({ text, blob, provider, fallback }: RecordedReply) {
  const extra = {
    ...(blob && { blob }),
    ...(provider && { provider }),
    ...(fallback && { model: fallback.model }),
  };
  return { role: 'assistant', text, ...extra } as const;
}

/**
 * The reasons that can block a model call. `bad_request`: the provider refuses the request for a
 * reason that is not known to be final. `budget`: a budget across runs is used up. `storage`: a blob that its prompt needs is missing or
 * damaged, or the store is down.
 */
export const MODEL_BLOCKS = [
  'credentials',
  'quota',
  'model',
  'bad_request',
  'provider',
  'budget',
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
