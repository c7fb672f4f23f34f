import { messageBytes } from '../segments/carry.js';
import { isObject } from '../json.js';
import { isSide, type Message } from './messages.js';
import type { Outcome } from '../outcome.js';
import { show } from '../text/format-value.js';
import type { PromptPage, TranscriptPage, TranscriptRange, TurnMemo } from '../status.js';
import { chunkedLength, type Transcript } from './transcript.js';

/** Maximum bytes of a page. A query whose answer exceeds 2 MiB fails. */
const PAGE_BYTES = 400 * 1024;
const MEMO_ANSWER_CHARACTERS = 1_000;

/**
 * Returns the messages with numbers from `from` to before `to`: at least one, and at most about 400
 * KB. The page has only messages of this segment; `total` counts all messages of the run.
 */
export function transcriptPage(
  transcript: Transcript,
  range: TranscriptRange = {},
): TranscriptPage {
  const from = Math.max(0, Math.floor(range.from ?? 0));
  const to = range.to ?? transcript.next;
  const { messages, pruned = [] } = transcript;
  const inRange = [...messages, ...pruned]
    .filter((message) => message.n >= from && message.n < to && (range.side || !isSide(message)))
    .toSorted((one, other) => one.n - other.n);
  return { messages: limitedPage(inRange), total: transcript.next };
}

/**
 * Returns a part of the prompt, by place: the chunks by reference, then messages of at most about
 * 400 KB.
 */
export function promptPage(
  transcript: Transcript,
  { from, to }: { from: number; to: number },
): PromptPage {
  const { chunks, messages } = transcript;
  const start = chunkedLength(transcript);
  const inRange = messages.slice(Math.max(0, from - start), Math.max(0, to - start));
  return { chunks, start, messages: limitedPage(inRange) };
}

/** Returns what is wrong with the range of a query, or null. `required`: its required fields. */
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

function limitedPage(inRange: readonly Message[]): readonly Message[] {
  let bytes = 0;
  const end = inRange.findIndex((message, index) => {
    bytes += messageBytes(message);
    return index > 0 && bytes > PAGE_BYTES;
  });
  return end === -1 ? inRange : inRange.slice(0, end);
}

/** Returns the memo after a turn. It is small and can be read without a worker. */
export function turnMemo(turn: number, outcome: Outcome): TurnMemo & { outcome?: Outcome } {
  const { status, reason } = outcome;
  // A canceled workflow has no result, so the memo has its outcome.
  const canceled = status === 'cancelled' && {
    outcome: { ...outcome, answer: cut(outcome.answer) },
  };
  return { turn, status, reason, ...canceled };
}

function cut(text: string | null): string | null {
  if (text === null || text.length <= MEMO_ANSWER_CHARACTERS) return text;
  return `${text.slice(0, MEMO_ANSWER_CHARACTERS)}…`;
}
