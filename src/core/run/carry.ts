import { utf8ToBytes } from '@noble/hashes/utils.js';
import { mayRefuse } from '../definition/graph-definition.js';
import { askingWork } from '../requests/open-requests.js';
import { stateMemo } from '../requests/request-memo.js';
import { isKeptVerbatim } from '../rules/compaction.js';
import { offloadedPlaces } from '../rules/documents.js';
import { withTurn } from '../state/change.js';
import { type RunState, SEGMENT } from '../state/state.js';
import { visitsOf } from '../state/turn-definition.js';
import { type Batch, getOpenBatch, inTurn } from '../state/turn.js';
import { type BlobRef, type Message, latestTexts, saidTexts } from '../transcript/messages.js';
import { FIRST_LINK, chain, toPromptMessage } from '../transcript/transcript.js';

/**
 * Bytes of JSON of the newest messages, which are passed by value. Older ones are offloaded to the
 * blob store.
 */
const INLINE_BYTES = 32 * 1024;
/**
 * Maximum bytes of a step passed by value. A larger one is offloaded as a whole, because a
 * segment's input is limited.
 */
const MAX_INLINE_BYTES = 512 * 1024;
/**
 * Bytes of offloaded messages that are also passed by value, because a compaction keeps them
 * verbatim.
 */
const VERBATIM_BYTES = 256 * 1024;

/** The inputs of the decision on a new segment. */
export interface SegmentFacts {
  readonly historyBytes: number;
  readonly historyEvents: number;
  /** The server suggests a new segment, or another build is now current for this run. */
  readonly suggested: boolean;
  /** Another build of the run's deployment is now current. */
  readonly moved?: boolean;
  /** The segment cannot end now. */
  readonly postponed?: true;
}

/** Number of history events at which a segment is full, even in a run that only answers updates. */
const MAX_EVENTS = 4_000;

/**
 * Whether the run has to continue in a new segment. A segment without its own messages may be full
 * of data from the previous one; only the number of events counts then. `now`: Unix time in ms.
 */
export function segmentFull(state: RunState, facts: SegmentFacts, now: number): boolean {
  const { segmentFrom, total, transcript, stayUntil } = state;
  if (facts.postponed) return false;
  if (stayUntil !== undefined && total.steps < stayUntil.step && now < stayUntil.at) return false;
  const { steps, bytes, events = MAX_EVENTS } = state.config.segment ?? SEGMENT;
  if (facts.historyEvents >= events) return true;
  // What blocks the run may be repaired in the other build.
  if (facts.moved && state.work.some(({ block }) => block !== undefined)) return true;
  const visits = visitsOf(state.graph) - (segmentFrom.visits ?? 0);
  if (transcript.next === segmentFrom.message && visits === 0) return false;
  const taken = total.steps - segmentFrom.steps + visits;
  return facts.suggested || taken >= steps || facts.historyBytes >= bytes;
}

/**
 * Returns the number of oldest messages in memory to offload before a new segment. A call and its
 * results stay together, so a later compaction can cut between the two parts.
 */
export function countOverflow(state: RunState, inlineBytes: number = INLINE_BYTES): number {
  const { transcript } = state;
  // The calls of an open batch stay in memory, because their results follow.
  const messages =
    getOpenBatch(state) === null ? transcript.messages : transcript.messages.slice(0, -1);
  let bytes = 0;
  let count =
    1 + messages.findLastIndex((message) => (bytes += messageBytes(message)) > inlineBytes);
  while (count > 0 && messages[count]?.role === 'tool') count -= 1;
  count = Math.min(count, firstToRefuse(state, messages));
  const inline = messages.slice(count).reduce((sum, message) => sum + messageBytes(message), 0);
  return inline > MAX_INLINE_BYTES ? messages.length : count;
}

/** Returns the place of the first message that a graph may still refuse, so it stays in memory. */
function firstToRefuse(state: RunState, messages: readonly Message[]): number {
  if (!mayRefuse(state.config.definition) || !inTurn(state)) return messages.length;
  const place = messages.findIndex(({ turn }) => turn === state.turn.number);
  return place === -1 ? messages.length : place;
}

/**
 * Returns the state after the oldest messages went to a chunk, and those before `archived` to the
 * archive.
 */
export function applyStoredMessages(
  state: RunState,
  stored: { archived: number; chunk: { blob: BlobRef; count: number } | null },
): RunState {
  const archived = Math.max(state.archived, stored.archived);
  // A new segment does not receive pruned messages, archived or not: no prompt has them.
  const { pruned: _, ...transcript } = state.transcript;
  if (stored.chunk === null) return { ...state, archived, transcript };
  const gone = transcript.messages.slice(0, stored.chunk.count);
  const { chunks, chunksHead = chunks.length === 0 ? FIRST_LINK : undefined } = transcript;
  const { historyTo } = state.config.definition.graph ?? {};
  const link =
    chunksHead === undefined
      ? undefined
      : gone.reduce((head, message) => chain(head, toPromptMessage(message)), chunksHead);
  const offloaded = offloadedPlaces(state, gone);
  return {
    ...(offloaded.length > 0 ? withTurn(state, { offloaded }) : state),
    archived,
    transcript: {
      ...transcript,
      chunks: [...chunks, stored.chunk],
      ...(link !== undefined && { chunksHead: link }),
      ...(historyTo && {
        latest: latestTexts([...(transcript.latest ?? []), ...saidTexts(gone)], historyTo.last),
      }),
      keptAside: verbatimMessages(state, gone),
      messages: transcript.messages.slice(stored.chunk.count),
    },
  };
}

function verbatimMessages(state: RunState, gone: readonly Message[]): readonly Message[] {
  const verbatim: Message[] = [];
  let bytes = 0;
  for (const message of [...state.transcript.keptAside, ...gone]) {
    if (!isKeptVerbatim(state, message)) continue;
    bytes += messageBytes(message);
    if (bytes > VERBATIM_BYTES) break;
    verbatim.push(message);
  }
  return verbatim;
}

/** Returns the state of the run at the beginning of a new segment. */
export function beginSegment(state: RunState): RunState {
  const { pruned: _, ...transcript } = state.transcript;
  const { stayUntil: __, notInline: ___, ...rest } = state;
  return {
    ...rest,
    transcript,
    segments: state.segments + 1,
    segmentFrom: {
      steps: state.total.steps,
      message: state.transcript.next,
      ...(state.graph && { visits: visitsOf(state.graph) }),
    },
  };
}

/** Fields of a segment's memo that say nothing about the next segment. */
const OWN_MEMO: ReadonlySet<string> = new Set(['requests', 'requestsTotal', 'kept', 'outcome']);

/**
 * Returns the memo with which the next segment starts. `state`: that of the next segment. Temporal carries over only the memo with
 * which this segment started, so everything that a reader needs later is written again: what the
 * run has published, and what follows from its state. `memo`: the current memo of this segment.
 */
export function nextMemo(
  state: RunState,
  {
    memo = {},
    began,
    run,
    tags,
  }: {
    readonly memo?: Readonly<Record<string, unknown>> | undefined;
    /** When this segment began, by the server's clock: Unix time in ms. */
    readonly began: number;
    /** The run's workflow id. */
    readonly run: string;
    readonly tags?: readonly string[] | undefined;
  },
): Readonly<Record<string, unknown>> {
  const { forkedFrom, segments } = state;
  // `state` is already that of the next segment.
  const startedAt = segments === 2 ? began : state.startedAt;
  return {
    startedAt,
    ...Object.fromEntries(Object.entries(memo).filter(([name]) => !OWN_MEMO.has(name))),
    ...(tags && { tags }),
    ...(forkedFrom && { forkedFrom }),
    ...(askingWork(state).length > 0 && stateMemo(state, run)),
  };
}

/** Steps after which a run retries to end its segment. */
const RETRY_AFTER_STEPS = 10;
/** Milliseconds after which a blocked run, which makes no steps, retries to end its segment. */
const RETRY_AFTER_MS = 10 * 60_000;

/** Postpones the end of a segment that cannot end now. `at`: Unix time in ms. */
export function keepSegment(state: RunState, at: number): RunState {
  const step = state.total.steps + RETRY_AFTER_STEPS;
  return { ...state, stayUntil: { step, at: at + RETRY_AFTER_MS } };
}

/** Returns the size in bytes of a message as JSON. */
export function messageBytes(message: Message): number {
  return utf8ToBytes(JSON.stringify(message)).length;
}

/** Maximum characters of JSON of an open batch's results that a new segment can receive. */
const MAX_CARRIED_RESULTS = 512 * 1024;

/**
 * Whether a batch's results fit a segment's input. They are passed by value until the batch is
 * complete.
 */
export function fitsInput({ results }: Batch): boolean {
  return JSON.stringify(results).length <= MAX_CARRIED_RESULTS;
}
