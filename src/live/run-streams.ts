import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import { BEGINNING, readPosition, type Position } from './position.js';
import { checkPosition, readStream } from './read-stream.js';
import { openRunStream, type RunStream, type RunStreamOptions } from './run-stream.js';
import type { StreamEvent } from './stream-events.js';

/** Where the stream of a run begins, and what ends the iteration. */
export interface StreamOptions {
  /**
   * The `position` of the last event that is known; `now`: only the reply in progress and what
   * comes later. Default: from the run's beginning.
   */
  readonly after?: string;
  /** Ends the iteration. The run is not affected. */
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
  shown: Pick<RunStreamOptions, 'sources' | 'ownProcess' | 'ringSize'>,
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
    // There is one listener per worker.
    setMaxListeners(0, controller.signal);
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
    const isPast =
      position !== 'now' &&
      stream.isOver() &&
      stream.ring.after(position.durable) === stream.ring.end;
    const batches = (async function* () {
      try {
        yield* readStream(client, { id, stream }, { after: position, signal });
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

function parseAfter(after: string): Position | 'now' {
  return after === 'now' ? 'now' : readPosition(after);
}
