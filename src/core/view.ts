import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { Message } from './messages.js';
import type { Outcome } from './outcome.js';
import type { TranscriptPage, TurnMemo } from './status.js';
import type { Transcript } from './transcript.js';

/** A query's answer over 2 MiB fails; pages stay far below it. */
const PAGE_BYTES = 400 * 1024;
const MEMO_ANSWER_CHARACTERS = 1_000;

/** A page of the transcript from `from` on: at least one message, at most about 400 KB, before `to`. */
export function transcriptPage(
  transcript: Transcript,
  range: { from?: number; to?: number } = {},
): TranscriptPage {
  const from = Math.max(0, Math.floor(range.from ?? 0));
  const wanted = transcript.messages.slice(from, range.to ?? transcript.messages.length);
  let bytes = 0;
  const fitting = wanted.findIndex((message, index) => {
    bytes += messageBytes(message);
    return index > 0 && bytes > PAGE_BYTES;
  });
  const messages = fitting === -1 ? wanted : wanted.slice(0, fitting);
  return { messages, total: transcript.messages.length };
}

function messageBytes(message: Message): number {
  return utf8ToBytes(JSON.stringify(message)).length;
}

/** What a turn leaves in the memo: small, and readable while no worker is up. */
export function turnMemo(turn: number, outcome: Outcome): TurnMemo & { outcome?: Outcome } {
  const { status, reason } = outcome;
  // A cancelled workflow has no result, so its outcome is kept here.
  const kept = status === 'cancelled' && { outcome: { ...outcome, answer: cut(outcome.answer) } };
  return { turn, status, reason, ...kept };
}

function cut(text: string | null): string | null {
  if (text === null || text.length <= MEMO_ANSWER_CHARACTERS) return text;
  return `${text.slice(0, MEMO_ANSWER_CHARACTERS)}…`;
}
