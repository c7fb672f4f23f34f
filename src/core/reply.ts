import type { Json } from './json.js';
import type { AskedCall, BlobRef, ProviderItems } from './transcript/messages.js';
import type { AttemptReport } from './report.js';

/** Tokens of one model call as recorded. */
export interface ReplyUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** A part of `outputTokens`; absent where the provider told of none. */
  readonly reasoningTokens?: number;
  /** The provider said nothing; counted from the texts. */
  readonly estimated?: true;
}

/** What an agent's `output` made of an answer; `problem` is for the model: where, what, and what would be right. */
export type ParsedAnswer =
  | { readonly ok: true; readonly output: Json }
  /** `output`: what could be read, though it does not keep to the contract. */
  | { readonly ok: false; readonly problem: string; readonly output?: Json };

/** A model's reply as the history records it: the one place where this message is kept. */
export interface RecordedReply {
  readonly text: string;
  readonly blob?: BlobRef;
  readonly calls?: readonly AskedCall[];
  readonly provider?: ProviderItems;
  /** What the agent's `output` made of the text; absent where it has none, or there is no answer. */
  readonly parsed?: ParsedAnswer;
  readonly finish: 'stop' | 'calls' | 'length' | 'filtered' | 'refused';
  readonly usage: ReplyUsage;
  readonly requestId?: string;
  /** What the server refused in this call, and is left out of the next ones. */
  readonly dropped?: readonly string[];
  /** The attempts that failed before this one; absent when there were none. */
  readonly reports?: readonly AttemptReport[];
}

/** The message that a reply becomes, its calls apart. */
export function toAssistantMessage({ text, blob, provider }: RecordedReply) {
  const kept = { ...(blob && { blob }), ...(provider && { provider }) };
  return { role: 'assistant', text, ...kept } as const;
}
