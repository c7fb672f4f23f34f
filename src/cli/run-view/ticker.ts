import type { Client } from '@temporalio/client';
import { pendingAttempts, type Attempt } from './attempts.js';
import type { Projection } from '../../history/projection.js';
import type { CliContext } from '../context.js';
import type { Hosting } from '../hosting/hosting.js';
import { attemptText, liveLine } from './live-line.js';
import type { Palette } from '../format/output.js';
import type { RunHeader } from '../reports/run-header.js';
import type { Screen } from './screen.js';
import type { LiveText } from './live-text.js';

const TICK_MS = 250;
/** The width of a terminal that does not report it. */
const DEFAULT_COLUMNS = 80;
/** After this time the header is shown even if no worker has loaded the agent. */
const HEADER_MS = 2_000;
/** The server is queried for retries only after an activity has run this long. */
const LONG_MS = 3_000;
/** The minimum interval between two such queries. */
const QUERY_MS = 1_000;
/**
 * After this time without progress, the worker elsewhere is probed. The time doubles after each
 * probe.
 */
const QUIET_MS = 3_000;
const MAX_QUIET_MS = 60_000;

export interface TickerOptions {
  readonly id: string;
  readonly runId: string;
  readonly hosting: Hosting;
  readonly screen: Screen;
  readonly paint: Palette;
  readonly header: RunHeader;
  readonly giveUp: (error: unknown) => void;
  /** Null before the first event. */
  readonly view: () => Projection | null;
  /** The reply in progress. */
  readonly liveText: Pick<LiveText, 'lines'>;
}

export interface Ticker {
  /** Restarts the wait for a probe, because the history has new events. */
  onProgress(): void;
  /** Redraws the live lines. */
  draw(): void;
  stop(): void;
}

/**
 * Updates the screen while nothing new is recorded: elapsed time, attempts, and probes of the
 * worker.
 */
export function startTicker(context: CliContext, client: Client, options: TickerOptions): Ticker {
  const { id, hosting, screen, paint, header, giveUp } = options;
  const startedAt = performance.now();
  let progressAt = startedAt;
  let quietMs = QUIET_MS;
  let attempts: ReadonlyMap<string, Attempt> = new Map();
  const showAttempts = createAttemptLines(screen);

  const draw = (): void => {
    const view = options.view();
    if (performance.now() - startedAt > HEADER_MS) header.show(null, screen);
    if (view !== null && view.ended === null) {
      const lines = options.liveText.lines(process.stderr.columns || DEFAULT_COLUMNS);
      screen.live(
        [...lines, liveLine(view, { now: Date.now(), attempts, paint, run: id })].join('\n'),
      );
    }
  };
  const queryAttempts = async (): Promise<void> => {
    const view = options.view();
    const oldest = Math.min(...[...(view?.inFlight.values() ?? [])].map(({ at }) => at));
    attempts = Date.now() - oldest > LONG_MS ? await pendingAttempts(client, id) : new Map();
    if (!context.isTty) showAttempts(attempts);
  };
  const probeWorker = (): void => {
    if (hosting.isHosting || performance.now() - progressAt < quietMs) return;
    progressAt = performance.now();
    quietMs = Math.min(2 * quietMs, MAX_QUIET_MS);
    hosting.ensure().catch(giveUp);
  };

  const drawTimer = setInterval(draw, TICK_MS);
  // The watcher that follows the history reports a server that does not answer.
  const queryTimer = setInterval(() => void queryAttempts().catch(() => undefined), QUERY_MS);
  const probeTimer = setInterval(probeWorker, QUERY_MS);
  return {
    draw,
    onProgress() {
      progressAt = performance.now();
      quietMs = QUIET_MS;
      draw();
    },
    stop() {
      for (const timer of [drawTimer, queryTimer, probeTimer]) clearInterval(timer);
    },
  };
}

/** Shows each further attempt in its own line if lines cannot be overwritten. */
function createAttemptLines(screen: Screen): (attempts: ReadonlyMap<string, Attempt>) => void {
  const shown = new Map<string, number>();
  return (attempts) => {
    for (const [activity, attempt] of attempts) {
      if (attempt.attempt <= (shown.get(activity) ?? 1)) continue;
      shown.set(activity, attempt.attempt);
      screen.line(`… ${attemptText(attempt)}`);
    }
  };
}
