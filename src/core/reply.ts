import type { Json } from './json.js';
import type { RequestedCall, BlobRef, ProviderItems } from './transcript/messages.js';
import type { AttemptReport } from './report.js';

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
export function toAssistantMessage({ text, blob, provider }: RecordedReply) {
  const extra = { ...(blob && { blob }), ...(provider && { provider }) };
  return { role: 'assistant', text, ...extra } as const;
}
