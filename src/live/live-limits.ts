import { readFileSync } from 'node:fs';

/** What readers may take of a worker at most. */
export interface LiveLimits {
  /** Streams that are read at once, by all clients. */
  readonly streams: number;
  /** Streams that one client reads at once. A client is an address; of IPv6, a /64 network. */
  readonly streamsPerClient: number;
  /** Connections that have not asked for a stream yet. With one more, the oldest is closed. */
  readonly waiting: number;
  /** Milliseconds in which the headers of a request have to arrive. */
  readonly headersMs: number;
  /** Milliseconds in which a whole request has to arrive. */
  readonly requestMs: number;
  /** Milliseconds in which a run has to be found for a reader; after it the answer is 503. */
  readonly openMs: number;
  /** Milliseconds in which a reader has to take what was sent; after it the connection is closed. */
  readonly stalledMs: number;
}

const TIMES = { headersMs: 5_000, requestMs: 10_000, openMs: 15_000, stalledMs: 60_000 };
const MOST_STREAMS = 512;
const MOST_WAITING = 256;
const LEAST = 16;

/**
 * The limits where none are given. Readers get at most three of eight file descriptors that the process
 * may open: the rest is for Temporal, models, and tools.
 */
export function defaultLimits(descriptors: number = descriptorLimit()): LiveLimits {
  const streams = share(descriptors / 4, MOST_STREAMS);
  return {
    streams,
    streamsPerClient: Math.ceil(streams / 2),
    waiting: share(descriptors / 8, MOST_WAITING),
    ...TIMES,
  };
}

function share(part: number, most: number): number {
  return Math.max(LEAST, Math.min(most, Math.floor(part)));
}

/** Infinity where the system does not say: Node raises its own limit as far as it may. */
function descriptorLimit(): number {
  try {
    const [, soft = ''] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === '' ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
