import { CancellationScope, sleep } from '@temporalio/workflow';
import { deadlineOf } from '../core/deadline.js';
import { apply } from '../core/loop.js';
import { inTurn } from '../core/state.js';
import { interrupt, type Session } from './session.js';

/** Sets the clock to the nearest deadline, of the turn or of the run; without one there is no timer. */
export function startClock(session: Session): void {
  session.clock?.cancel();
  session.clock = null;
  const deadline = deadlineOf(session.state);
  if (deadline === null) return;
  const scope = new CancellationScope();
  session.clock = scope;
  scope
    .run(async () => {
      await sleep(Math.max(1, deadline.at - Date.now()));
      if (deadline.of === 'run') apply(session, { type: 'ending', by: 'wallMs' });
      if (inTurn(session.state)) interrupt(session, 'wallMs');
    })
    .catch(() => undefined);
}
