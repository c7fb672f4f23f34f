import { CancellationScope, sleep } from '@temporalio/workflow';
import { deadlineOf } from '../core/deadline.js';
import { apply } from '../core/loop.js';
import { inTurn } from '../core/state.js';
import { interrupt, type Session } from './run-context.js';

/** A hundred years. */
const FARTHEST_MS = 100 * 365 * 24 * 60 * 60_000;

/** Sets the clock to the nearest deadline, of the turn or of the run; without one there is no timer. */
export function startClock(session: Session): void {
  session.clock?.cancel();
  session.clock = null;
  const deadline = deadlineOf(session.state);
  if (deadline === null) return;
  const leftMs = deadline.at - Date.now();
  // The server refuses a timer that it cannot count, and a run does not live that long.
  if (!(leftMs <= FARTHEST_MS)) return;
  const scope = new CancellationScope();
  session.clock = scope;
  scope
    .run(async () => {
      await sleep(Math.max(1, leftMs));
      if (deadline.of === 'run') apply(session, { type: 'ending', by: 'wallMs' });
      if (inTurn(session.state)) interrupt(session, 'wallMs');
    })
    .catch(() => undefined);
}
