import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import { readPosition, type Position, BEGINNING } from './position.js';
import { checkPosition, readStream } from './read-stream.js';
import type { RingSize } from './stream-ring.js';
import { openRunStream, type LiveSource, type RunStream } from './run-stream.js';
import type { StreamEvent } from './stream-events.js';

export interface StreamOptions {
  /**
   * The `position` of the last event that is known; `now`: only what is being said at the moment and
   * what comes. Default: from the run's beginning.
   */
  readonly after?: string;
  /** Ends the iteration; the run does not notice. */
  readonly signal?: AbortSignal;
}

/** The feeds of the runs that are read in this process, each shared by all its readers. */
export interface RunStreams {
  /**
   * Durable events and what is being said in between, in one order. Ends with the run. Rejects with a
   * `NoRunError`, and with an `InputError` for a position that there is not.
   */
  read(id: string, options: StreamOptions): AsyncGenerator<StreamEvent, void, undefined>;
  /** As `read`, but resolves once it is clear that the run and the position are there. */
  open(id: string, options: StreamOptions): Promise<OpenedStream>;
  /** How many runs are followed. */
  readonly size: number;
}

export interface OpenedStream {
  /** Events, all that are there at once. */
  readonly batches: AsyncGenerator<readonly StreamEvent[], void, undefined>;
  /** There is nothing behind the position, and there never will be. */
  readonly isPast: boolean;
  /** To be called where `batches` is not iterated to its end. */
  close(): void;
}

interface Shared {
  readonly feed: RunStream;
  readonly over: AbortController;
  readers: number;
}

export function createRunStreams(
  client: Client,
  { sources, ringSize }: { readonly sources: readonly LiveSource[]; readonly ringSize?: RingSize },
): RunStreams {
  const shared = new Map<string, Shared>();

  const enter = (id: string): { readonly feed: RunStream; readonly leave: () => void } => {
    const one = shared.get(id) ?? begin(id);
    one.readers += 1;
    let isIn = true;
    const leave = (): void => {
      if (!isIn) return;
      isIn = false;
      one.readers -= 1;
      if (one.readers > 0) return;
      one.over.abort();
      if (shared.get(id) === one) shared.delete(id);
    };
    return { feed: one.feed, leave };
  };
  const begin = (id: string): Shared => {
    const over = new AbortController();
    // As many listen as there are workers.
    setMaxListeners(0, over.signal);
    const feed = openRunStream(client, {
      id,
      sources,
      readers: () => shared.get(id)?.readers ?? 0,
      signal: over.signal,
      ...(ringSize && { ringSize }),
    });
    const one = { feed, over, readers: 0 };
    shared.set(id, one);
    // A feed that has failed is no good for those who come after.
    feed.ready.catch(() => {
      if (shared.get(id) === one) shared.delete(id);
    });
    return one;
  };

  const open = async (
    id: string,
    { after, signal = new AbortController().signal }: StreamOptions,
  ): Promise<OpenedStream> => {
    const position = after === undefined || after === '' ? BEGINNING : placeOf(after);
    const { feed, leave } = enter(id);
    try {
      await feed.ready;
      if (position !== 'now') await checkPosition(client, { id, feed }, position);
    } catch (error) {
      leave();
      throw error;
    }
    const isPast =
      position !== 'now' && feed.isOver() && feed.ring.behind(position.durable) === feed.ring.end;
    const batches = (async function* () {
      try {
        yield* readStream(client, { id, feed }, { after: position, signal });
      } finally {
        leave();
      }
    })();
    return { batches, isPast, close: leave };
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

function placeOf(after: string): Position | 'now' {
  return after === 'now' ? 'now' : readPosition(after);
}
