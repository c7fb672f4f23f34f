import type { AskedCall, BlobRef } from './messages.js';
import type { AttemptReport } from './report.js';

/** Tokens of one model call as recorded. */
export interface ReplyUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** The provider said nothing; counted from the texts. */
  readonly estimated?: true;
}

/** A model's reply as the history records it: the one place where this message is kept. */
export interface RecordedReply {
  readonly text: string;
  readonly blob?: BlobRef;
  readonly calls?: readonly AskedCall[];
  readonly finish: 'stop' | 'calls' | 'length' | 'filtered' | 'refused';
  readonly usage: ReplyUsage;
  readonly requestId?: string;
  /** The attempts that failed before this one; absent when there were none. */
  readonly reports?: readonly AttemptReport[];
}
