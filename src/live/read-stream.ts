import type { Client } from '@temporalio/client';
import { followEvents } from '../history/follow-events.js';
import { readOffset, type Offset } from '../history/offset.js';
import type { DurableEvent } from '../history/durable-events.js';
import { InputError } from '../core/errors.js';
import { readSegmentStart } from '../history/segments.js';
import { visible } from '../core/text/summaries.js';
import type { Position } from './position.js';
import type { RunStream } from './run-stream.js';
import { createTeller, durableItem, frameItems, type Teller } from './stream-cursor.js';
import type { StreamEvent } from './stream-events.js';

export interface ReadOptions {
  /** `now`: only what is being said at the moment, and what comes. */
  readonly after: Position | 'now';
  readonly signal: AbortSignal;
}

/** Events that are given at once, where so many are there. */
const BATCH = 32;

/**
 * Reads a run by the feed that it shares with others, all that is there at once. Where the feed does
 * not reach back so far, and where the reader falls behind, the history is read on its own account
 * until the feed is caught up with. Ends with the run, or with the signal. Reads only as fast as it is
 * asked to.
 */
export async function* readStream(
  client: Client,
  { id, feed }: { readonly id: string; readonly feed: RunStream },
  { after, signal }: ReadOptions,
): AsyncGenerator<readonly StreamEvent[], void, undefined> {
  const isNow = after === 'now';
  const start = isNow ? { durable: feed.intake.newest, live: null } : after;
  const teller = createTeller(start, feed.intake.kept);
  let next = isNow ? feed.ring.end : feed.ring.behind(start.durable);
  let batch: StreamEvent[] = isNow ? current(feed, teller) : [];
  while (!signal.aborted) {
    const isBehind = next === null || next < feed.ring.start;
    const item = next === null || isBehind ? undefined : feed.ring.at(next);
    if (batch.length > 0 && (item === undefined || batch.length >= BATCH)) {
      yield batch;
      // Meanwhile anything may have come.
      batch = [];
      continue;
    }
    if (isBehind) {
      if (next !== null) yield teller.overtaken();
      next = yield* catchUp(client, { id, feed, teller, signal });
    } else if (item !== undefined && next !== null) {
      next += 1;
      batch.push(...teller.tell(item));
    } else if (feed.isOver()) {
      return;
    } else {
      await change(feed, signal);
    }
  }
}

/** Rejects with an `InputError` for a position in a part of the run that is not kept, or not there yet. */
export async function checkPosition(
  client: Client,
  { id, feed }: { readonly id: string; readonly feed: RunStream },
  { durable }: Position,
): Promise<void> {
  if (durable === null || feed.ring.behind(durable) !== null) return;
  const place = readOffset(durable);
  const { newest } = feed.intake;
  // Another worker may have told the reader of an event before it came here: then the server knows it.
  const isAhead =
    newest !== null &&
    readOffset(newest).runId === place.runId &&
    place.event > readOffset(newest).event;
  const isKept = isAhead
    ? await hasEvent(client, id, place)
    : (await readSegmentStart(client, id, place.runId)) !== null;
  if (isKept) return;
  throw new InputError(
    `after: the server keeps no such part of run ${visible(id)}, or not any more; leave it out`,
  );
}

async function hasEvent(client: Client, id: string, { runId, event }: Offset): Promise<boolean> {
  const { historyLength } = await client.workflow.getHandle(id, runId).describe();
  return event <= historyLength;
}

function current(feed: RunStream, teller: Teller): StreamEvent[] {
  const frame = feed.intake.current();
  if (frame === null) return [];
  return frameItems(frame, feed.intake.newest).flatMap((item) => teller.tell(item));
}

/** Tells durable events from the history until the feed has what follows. @returns where in the feed */
async function* catchUp(
  client: Client,
  {
    id,
    feed,
    teller,
    signal,
  }: {
    readonly id: string;
    readonly feed: RunStream;
    readonly teller: Teller;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<readonly StreamEvent[], number | null, undefined> {
  const own = new AbortController();
  const stop = (): void => own.abort();
  signal.addEventListener('abort', stop, { once: true });
  const { durable } = teller.position;
  const events = followEvents(client, id, {
    ...(durable !== null && { from: durable }),
    signal: own.signal,
  });
  try {
    let reading: Promise<IteratorResult<DurableEvent, void>> | null = events.next();
    let changed = change(feed, own.signal);
    for (;;) {
      const found = feed.ring.behind(teller.position.durable);
      if (found !== null || signal.aborted) return found;
      // Both see what is new; whichever is first, the place may be found then.
      const read: IteratorResult<DurableEvent, void> | undefined = await (reading === null
        ? changed
        : Promise.race([reading, changed]));
      if (read === undefined) {
        if (feed.isOver() && reading === null) return feed.ring.end;
        changed = change(feed, own.signal);
      } else if (read.done) {
        reading = null;
      } else {
        yield teller.tell(durableItem(read.value));
        reading = events.next();
        // It may come to nothing when nobody waits for it any more.
        reading.catch(() => undefined);
      }
    }
  } finally {
    own.abort();
    signal.removeEventListener('abort', stop);
  }
}

/** Resolves when the feed changes, or the signal aborts. */
async function change(feed: RunStream, signal: AbortSignal): Promise<undefined> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      forget();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const forget = feed.onChange(end);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });
  return undefined;
}
