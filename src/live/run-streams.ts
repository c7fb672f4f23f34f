import type { Client } from '@temporalio/client';
import { InputError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { type Offset, followEvents, readOffset } from '../history/follow-events.js';
import type { DurableEvent } from '../history/durable-steps.js';
import { readSegmentStart } from '../history/segments.js';
import { describeWorkflow } from '../temporal/server-answers.js';
import { type RunStream, type RunStreamOptions, openRunStream } from './run-stream.js';
import {
  BEGINNING,
  type Position,
  type StreamCursor,
  type StreamEvent,
  createStreamCursor,
  deltasEntry,
  durableEntry,
  readPosition,
  writePosition,
} from './stream.js';

/** Where a reader of a stream begins. */
interface Begun {
  readonly start: Position;
  readonly cursor: StreamCursor;
  /** The number of the next entry in the ring; null if the ring does not have the position. */
  readonly next: number | null;
  /** The events that come first. */
  readonly first: readonly StreamEvent[];
}

/** Begins to read after a position; `now`: with the reply in progress and what comes later. */
function beginAfter(stream: RunStream, after: Position | 'now'): Begun {
  const isNow = after === 'now';
  const start = isNow ? { durable: stream.merger.newest, live: null } : after;
  const cursor = createStreamCursor(start, stream.merger.kept);
  const next = isNow ? stream.ring.end : stream.ring.after(start.durable);
  return { start, cursor, next, first: isNow ? currentReplies(stream, cursor) : [] };
}

interface OpenStream {
  readonly id: string;
  readonly stream: RunStream;
}

/** The maximum number of events per batch. */
const BATCH = 32;

/**
 * Reads a run from the stream that all its readers share. If the stream does not reach back far
 * enough, or if the reader falls behind, it reads the history by itself until it has caught up.
 * Ends when the run ends or the signal aborts. Reads only as fast as it is iterated.
 */
async function* readStream(
  client: Client,
  { id, stream }: OpenStream,
  { cursor, next: from, first, signal }: Begun & { readonly signal: AbortSignal },
): AsyncGenerator<readonly StreamEvent[], void, undefined> {
  let next = from;
  let batch: StreamEvent[] = [...first];
  while (!signal.aborted) {
    const isBehind = next === null || next < stream.ring.start;
    const entry = next === null || isBehind ? undefined : stream.ring.at(next);
    if (batch.length > 0 && (entry === undefined || batch.length >= BATCH)) {
      yield batch;
      // The ring may have moved on during the yield.
      batch = [];
      continue;
    }
    if (isBehind) {
      if (next !== null) yield cursor.skipLost();
      next = yield* catchUp(client, { id, stream, cursor, signal });
    } else if (entry !== undefined && next !== null) {
      next += 1;
      batch.push(...cursor.advance(entry));
    } else if (stream.isOver()) {
      return;
    } else {
      await nextChange(stream, signal);
    }
  }
}

/**
 * Rejects with an `InputError` for a position in a part of the run that is not kept or does not
 * exist yet.
 */
async function checkPosition(
  client: Client,
  { id, stream }: OpenStream,
  { durable }: Position,
): Promise<void> {
  if (durable === null || stream.ring.after(durable) !== null) return;
  const place = readOffset(durable);
  const { newest } = stream.merger;
  // Another worker may have sent the reader an event that has not arrived here; the server knows
  // it.
  const isAhead =
    newest !== null &&
    readOffset(newest).runId === place.runId &&
    place.event > readOffset(newest).event;
  const isKept = isAhead
    ? await hasEvent(client, id, place)
    : (await readSegmentStart(client, id, place.runId)) !== null;
  if (isKept) return;
  throw new InputError(`after: the server does not keep this part of run ${visible(id)}; omit it`);
}

async function hasEvent(client: Client, id: string, { runId, event }: Offset): Promise<boolean> {
  const { historyLength } = await describeWorkflow(client, id, runId);
  return event <= historyLength;
}

function currentReplies({ merger }: RunStream, cursor: StreamCursor): StreamEvent[] {
  return merger.current().flatMap(({ attempt, log }) => {
    const batch = { attempt, deltas: log.since(0) };
    return cursor.advance(deltasEntry(batch, merger.newest));
  });
}

/**
 * Yields durable events from the history until the ring has the next one. Returns its number in the
 * ring; null if the signal aborted first.
 */
async function* catchUp(
  client: Client,
  {
    id,
    stream,
    cursor,
    signal,
  }: OpenStream & { readonly cursor: StreamCursor; readonly signal: AbortSignal },
): AsyncGenerator<readonly StreamEvent[], number | null, undefined> {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  signal.addEventListener('abort', stop, { once: true });
  const { durable } = cursor.position;
  const events = followEvents(client, id, {
    ...(durable !== null && { from: durable }),
    signal: controller.signal,
  });
  try {
    let reading: Promise<IteratorResult<DurableEvent, void>> | null = events.next();
    let changed = nextChange(stream, controller.signal);
    for (;;) {
      const found = stream.ring.after(cursor.position.durable);
      if (found !== null || signal.aborted) return found;
      // Both the history and the ring get new events; after either, the ring may contain the
      // position.
      const read: IteratorResult<DurableEvent, void> | undefined = await (reading === null
        ? changed
        : Promise.race([reading, changed]));
      if (read === undefined) {
        if (stream.isOver() && reading === null) return stream.ring.end;
        changed = nextChange(stream, controller.signal);
      } else if (read.done) {
        reading = null;
      } else {
        yield cursor.advance(durableEntry(read.value));
        reading = events.next();
        // It may reject after this function has returned.
        reading.catch(() => undefined);
      }
    }
  } finally {
    controller.abort();
    signal.removeEventListener('abort', stop);
  }
}

/** Resolves when the stream changes, or the signal aborts. */
async function nextChange(stream: RunStream, signal: AbortSignal): Promise<undefined> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      unsubscribe();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const unsubscribe = stream.onChange(end);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });
  return undefined;
}

/** Where the stream of a run begins, and what ends the iteration. */
export interface StreamOptions {
  /**
   * The `position` of the last event that is known; `now`: only the reply in progress and what
   * comes later. Default: from the run's beginning.
   */
  readonly after?: string;
  /** Ends the iteration. The run is not affected. Default: none. */
  readonly signal?: AbortSignal;
}

/** The streams of the runs that are read in this process, each shared by all its readers. */
export interface RunStreams {
  /**
   * Yields durable events, with live events in between, in one order. Ends with the run. Rejects
   * with a `NoRunError`, and with an `InputError` for a position that does not exist.
   */
  read(id: string, options: StreamOptions): AsyncGenerator<StreamEvent, void, undefined>;
  /** As `read`, but resolves once the run and the position are known to exist. */
  open(id: string, options: StreamOptions): Promise<OpenedStream>;
  /** How many runs are followed. */
  readonly size: number;
}

export interface OpenedStream {
  /** Yields all available events together. */
  readonly batches: AsyncGenerator<readonly StreamEvent[], void, undefined>;
  /** Whether the run has ended and there is no event after the position. */
  readonly isPast: boolean;
  /** Where it begins, to pass back as `after`: for `now`, the newest event that is durable. */
  readonly position: string;
  /** Must be called if `batches` is not iterated to its end. */
  close(): void;
}

interface SharedStream {
  readonly stream: RunStream;
  readonly controller: AbortController;
  readers: number;
}

export function createRunStreams(
  client: Client,
  shown: Pick<RunStreamOptions, 'sources' | 'ownProcess' | 'unreachable' | 'ringSize'>,
): RunStreams {
  const shared = new Map<string, SharedStream>();

  const join = (id: string): { readonly stream: RunStream; readonly leave: () => void } => {
    const joined = shared.get(id) ?? begin(id);
    joined.readers += 1;
    let hasLeft = false;
    const leave = (): void => {
      if (hasLeft) return;
      hasLeft = true;
      joined.readers -= 1;
      if (joined.readers > 0) return;
      joined.controller.abort();
      if (shared.get(id) === joined) shared.delete(id);
    };
    return { stream: joined.stream, leave };
  };
  const begin = (id: string): SharedStream => {
    const controller = new AbortController();
    const stream = openRunStream(client, {
      id,
      ...shown,
      readers: () => shared.get(id)?.readers ?? 0,
      signal: controller.signal,
    });
    const begun = { stream, controller, readers: 0 };
    shared.set(id, begun);
    // Later readers do not join a stream that has failed.
    stream.ready.catch(() => {
      if (shared.get(id) === begun) shared.delete(id);
    });
    return begun;
  };

  const open = async (
    id: string,
    { after, signal = new AbortController().signal }: StreamOptions,
  ): Promise<OpenedStream> => {
    const position = after === undefined || after === '' ? BEGINNING : parseAfter(after);
    const { stream, leave } = join(id);
    try {
      await stream.ready;
      if (position !== 'now') await checkPosition(client, { id, stream }, position);
    } catch (error) {
      leave();
      throw error;
    }
    const begun = beginAfter(stream, position);
    const isPast = stream.isOver() && begun.next === stream.ring.end;
    const batches = (async function* () {
      try {
        yield* readStream(client, { id, stream }, { ...begun, signal });
      } finally {
        leave();
      }
    })();
    return { batches, isPast, position: writePosition(begun.start), close: leave };
  };

  return {
    open,
    async *read(id, options) {
      const { batches } = await open(id, options);
      for await (const batch of batches) yield* batch;
    },
    get size() {
      return shared.size;
    },
  };
}

function parseAfter(after: string): Position | 'now' {
  return after === 'now' ? 'now' : readPosition(after);
}
