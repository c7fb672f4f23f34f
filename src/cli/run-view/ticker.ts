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
/** Of a terminal that does not tell. */
const COLUMNS = 80;
/** A run that nobody works on is shown nevertheless after this time. */
const HEADER_MS = 2_000;
/** Only what takes so long is worth asking the server about, */
const LONG_MS = 3_000;
/** and at most so often. */
const ASK_MS = 1_000;
/** After so much silence somebody should look whether the worker elsewhere still lives; doubled each time. */
const QUIET_MS = 3_000;
const LONGEST_QUIET_MS = 60_000;

export interface Ticking {
  readonly id: string;
  readonly runId: string;
  readonly hosting: Hosting;
  readonly screen: Screen;
  readonly paint: Palette;
  readonly header: RunHeader;
  readonly giveUp: (error: unknown) => void;
  /** Null before the first event. */
  readonly view: () => Projection | null;
  /** What is being said at the moment. */
  readonly writing: Pick<LiveText, 'lines'>;
}

export interface Ticker {
  /** Tells that the history has brought something. */
  heard(): void;
  /** Shows how things are at this moment. */
  draw(): void;
  stop(): void;
}

/** What a watcher does while nothing new is recorded: seconds, attempts, and a look at the worker. */
export function startTicker(context: CliContext, client: Client, ticking: Ticking): Ticker {
  const { id, hosting, screen, paint, header, giveUp } = ticking;
  const startedAt = Date.now();
  let heardAt = startedAt;
  let quietMs = QUIET_MS;
  let attempts: ReadonlyMap<string, Attempt> = new Map();
  const say = createAttemptLines(screen);

  const draw = (): void => {
    const view = ticking.view();
    if (Date.now() - startedAt > HEADER_MS) header.show(null, screen);
    if (view !== null && view.ended === null) {
      const said = ticking.writing.lines(process.stderr.columns || COLUMNS);
      screen.live([...said, liveLine(view, { now: Date.now(), attempts, paint })].join('\n'));
    }
  };
  const ask = async (): Promise<void> => {
    const view = ticking.view();
    const oldest = Math.min(...[...(view?.inFlight.values() ?? [])].map(({ at }) => at));
    attempts = Date.now() - oldest > LONG_MS ? await pendingAttempts(client, id) : new Map();
    if (!context.isTty) say(attempts);
  };
  const look = (): void => {
    if (hosting.isHosting || Date.now() - heardAt < quietMs) return;
    heardAt = Date.now();
    quietMs = Math.min(2 * quietMs, LONGEST_QUIET_MS);
    hosting.ensure().catch(giveUp);
  };

  const drawing = setInterval(draw, TICK_MS);
  // A server that does not answer is noticed by who follows the history.
  const asking = setInterval(() => void ask().catch(() => undefined), ASK_MS);
  const looking = setInterval(look, ASK_MS);
  return {
    draw,
    heard() {
      heardAt = Date.now();
      quietMs = QUIET_MS;
      draw();
    },
    stop() {
      for (const timer of [drawing, asking, looking]) clearInterval(timer);
    },
  };
}

/** Where no line can be overwritten, each further attempt gets one of its own. */
function createAttemptLines(screen: Screen): (attempts: ReadonlyMap<string, Attempt>) => void {
  const told = new Map<string, number>();
  return (attempts) => {
    for (const [activity, attempt] of attempts) {
      if (attempt.attempt <= (told.get(activity) ?? 1)) continue;
      told.set(activity, attempt.attempt);
      screen.line(`… ${attemptText(attempt)}`);
    }
  };
}
