import { readFileSync } from 'node:fs';
import type { Duration } from '../core/text/duration.js';

/**
 * Limits on the resources of a worker that readers may use. Times are durations: ms, or words such
 * as '5 seconds'.
 */
export interface LiveLimits {
  /** Streams open at once, for all clients. */
  readonly streams: number;
  /** Streams open at once per client. A client is an IPv4 address or an IPv6 /64 network. */
  readonly streamsPerClient: number;
  /**
   * Connections that have not requested a stream yet. If there is one more, the oldest is closed.
   */
  readonly waiting: number;
  /** The time within which the headers of a request must arrive. */
  readonly headersTimeout: Duration;
  /** The time within which a whole request must arrive. */
  readonly requestTimeout: Duration;
  /** The time within which the run must be found; otherwise the response is 503. */
  readonly openTimeout: Duration;
  /** The time within which a reader must read what was sent; otherwise it is disconnected. */
  readonly readTimeout: Duration;
}

/** The limits in force; see `LiveLimits`. */
export interface LimitsInForce extends Pick<
  LiveLimits,
  'streams' | 'streamsPerClient' | 'waiting'
> {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly openMs: number;
  readonly stalledMs: number;
}

const TIMES = { headersMs: 5_000, requestMs: 10_000, openMs: 15_000, stalledMs: 60_000 };
const MAX_STREAMS = 512;
const MAX_WAITING = 256;
const MIN_SHARE = 16;

/**
 * Returns the default limits. Readers get at most three eighths of the file descriptors that the
 * process may open; the rest is for Temporal, models, and tools.
 */
export function defaultLimits(descriptors: number = descriptorLimit()): LimitsInForce {
  const streams = share(descriptors / 4, MAX_STREAMS);
  return {
    streams,
    streamsPerClient: Math.ceil(streams / 2),
    waiting: share(descriptors / 8, MAX_WAITING),
    ...TIMES,
  };
}

function share(part: number, max: number): number {
  return Math.max(MIN_SHARE, Math.min(max, Math.floor(part)));
}

/**
 * Returns the maximum number of open files; Infinity if the system does not report it. Node raises
 * its own limit as far as it is allowed to.
 */
function descriptorLimit(): number {
  try {
    const [, soft = ''] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === '' ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
