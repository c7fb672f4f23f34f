import { messageBytes } from '../segments/carry.js';
import { isObject } from '../json.js';
import { isSide, type Message } from './messages.js';
import type { Outcome } from '../outcome.js';
import { show } from '../text/format-value.js';
import type { RunState } from '../state.js';
import type { PromptPage, TranscriptPage, TurnMemo } from '../status.js';
import { chunkedLength, type Transcript } from './transcript.js';

/** A query's answer over 2 MiB fails; pages stay far below it. */
const PAGE_BYTES = 400 * 1024;
const MEMO_ANSWER_CHARACTERS = 1_000;

/**
 * A page of what was said, by `n` from `from` on: at least one message, at most about 400 KB, before
 * `to`. Only what this segment still holds: `total` counts everything.
 */
export function transcriptPage(
  transcript: Transcript,
  range: { from?: number; to?: number; side?: boolean } = {},
): TranscriptPage {
  const from = Math.max(0, Math.floor(range.from ?? 0));
  const to = range.to ?? transcript.next;
  const { messages, pruned = [] } = transcript;
  const wanted = (range.side ? [...messages, ...pruned] : messages)
    .filter((message) => message.n >= from && message.n < to && (range.side || !isSide(message)))
    .toSorted((one, other) => one.n - other.n);
  return { messages: fitting(wanted), total: transcript.next };
}

/** A page of the prompt, by place: what lies in chunks by reference, the rest like a transcript's page. */
export function promptPage(
  transcript: Transcript,
  { from, to }: { from: number; to: number },
): PromptPage {
  const { chunks, messages } = transcript;
  const start = chunkedLength(transcript);
  const wanted = messages.slice(Math.max(0, from - start), Math.max(0, to - start));
  return { chunks, start, messages: fitting(wanted) };
}

/** @returns what is wrong with the range of a query, or null; a range that need not be given may be null */
export function rangeProblem(
  query: string,
  value: unknown,
  required: readonly string[] = [],
): string | null {
  if ((value === undefined || value === null) && required.length === 0) return null;
  if (!isObject(value)) return `${query}: expected a range, got ${show(value)}; give {"from": 0}`;
  for (const name of ['from', 'to']) {
    const place = value[name];
    if (place === undefined && !required.includes(name)) continue;
    if (typeof place !== 'number' || !(place >= 0)) {
      return `${query}.${name}: expected a number from 0, got ${show(place)}`;
    }
  }
  const { side } = value;
  if (side === undefined || typeof side === 'boolean') return null;
  return `${query}.side: expected true or false, got ${show(side)}`;
}

function fitting(wanted: readonly Message[]): readonly Message[] {
  let bytes = 0;
  const end = wanted.findIndex((message, index) => {
    bytes += messageBytes(message);
    return index > 0 && bytes > PAGE_BYTES;
  });
  return end === -1 ? wanted : wanted.slice(0, end);
}

/** What a turn leaves in the memo: small, and readable while no worker is up. */
export function turnMemo(
  { segments, startedAt }: Pick<RunState, 'segments' | 'startedAt'>,
  turn: number,
  outcome: Outcome,
): TurnMemo & { outcome?: Outcome } {
  const { status, reason } = outcome;
  // The server knows when the newest segment began, and nothing of those before it.
  const began = segments > 1 && { startedAt };
  // A cancelled workflow has no result, so its outcome is kept here.
  const kept = status === 'cancelled' && { outcome: { ...outcome, answer: cut(outcome.answer) } };
  return { turn, status, reason, ...began, ...kept };
}

function cut(text: string | null): string | null {
  if (text === null || text.length <= MEMO_ANSWER_CHARACTERS) return text;
  return `${text.slice(0, MEMO_ANSWER_CHARACTERS)}…`;
}
