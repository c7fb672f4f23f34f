import { utf8ToBytes } from '@noble/hashes/utils.js';
import type { Message } from '../transcript/messages.js';
import type { BlobRef } from '../transcript/messages.js';
import { isKeptVerbatim } from '../compaction.js';
import { SEGMENT, type RunState } from '../state.js';

/** Newest messages that go over by value, in bytes of JSON; the older ones go to the blob store. */
const INLINE_BYTES = 32 * 1024;
/** A step that is larger goes to the store as a whole: the input of a segment has its limits. */
const MOST_INLINE_BYTES = 512 * 1024;
/** What a later compaction keeps word for word is carried beside the chunks, up to so many bytes. */
const ASIDE_BYTES = 256 * 1024;

/** What the server says of the segment. */
export interface SegmentFacts {
  readonly historyBytes: number;
  readonly historyEvents: number;
  /** The server asks for a new segment, or a newer build waits for this run. */
  readonly suggested: boolean;
  /** The segment cannot be left now. */
  readonly postponed?: true;
  /** What is left to do is blocked, and can be left to a new segment as it stands. */
  readonly allBlocked?: true;
}

/** Also a run that is only looked at and asked: the server takes so many events, and 2,000 updates. */
const MOST_EVENTS = 4_000;

/**
 * Whether the run shall go on in a new segment. Before this one has brought something, what was
 * carried may be what fills it; then only a long history counts.
 */
export function segmentFull(state: RunState, facts: SegmentFacts): boolean {
  const { segmentFrom, total, transcript } = state;
  if (facts.postponed) return false;
  const { steps, bytes, events = MOST_EVENTS } = state.config.segment ?? SEGMENT;
  if (facts.historyEvents >= events) return true;
  if (transcript.next === segmentFrom.message) return false;
  return facts.suggested || total.steps - segmentFrom.steps >= steps || facts.historyBytes >= bytes;
}

/**
 * How many of the oldest messages in memory go to the blob store before the run goes on elsewhere.
 * A call and its results stay on one side, so that a later compaction can cut between the two.
 */
export function countOverflow(
  { transcript, turn }: RunState,
  inlineBytes: number = INLINE_BYTES,
): number {
  // The calls of an open batch stay with the results that are still to come.
  const messages = turn.batch === null ? transcript.messages : transcript.messages.slice(0, -1);
  let bytes = 0;
  let count = 1 + messages.findLastIndex((message) => (bytes += messageBytes(message)) > inlineBytes);
  while (count > 0 && messages[count]?.role === 'tool') count -= 1;
  const inline = messages.slice(count).reduce((sum, message) => sum + messageBytes(message), 0);
  return inline > MOST_INLINE_BYTES ? messages.length : count;
}

/** The state with the oldest messages in a chunk and everything before `archived` in the archive. */
export function applyStoredMessages(
  state: RunState,
  kept: { archived: number; chunk: { blob: BlobRef; count: number } | null },
): RunState {
  const archived = Math.max(state.archived, kept.archived);
  // Whether they went to the archive or not: a new segment does not carry what no model reads.
  const { pruned: _, ...transcript } = state.transcript;
  if (kept.chunk === null) return { ...state, archived, transcript };
  const gone = transcript.messages.slice(0, kept.chunk.count);
  return {
    ...state,
    archived,
    transcript: {
      ...transcript,
      chunks: [...transcript.chunks, kept.chunk],
      keptAside: aside(state, gone),
      messages: transcript.messages.slice(kept.chunk.count),
    },
  };
}

function aside(state: RunState, gone: readonly Message[]): readonly Message[] {
  const kept: Message[] = [];
  let bytes = 0;
  for (const message of [...state.transcript.keptAside, ...gone]) {
    if (!isKeptVerbatim(state, message)) continue;
    bytes += messageBytes(message);
    if (bytes > ASIDE_BYTES) break;
    kept.push(message);
  }
  return kept;
}

/** The same run at the beginning of a new segment. */
export function beginSegment(state: RunState): RunState {
  const { pruned: _, ...transcript } = state.transcript;
  return {
    ...state,
    transcript,
    segments: state.segments + 1,
    segmentFrom: { steps: state.total.steps, message: state.transcript.next },
  };
}

export function messageBytes(message: Message): number {
  return utf8ToBytes(JSON.stringify(message)).length;
}
