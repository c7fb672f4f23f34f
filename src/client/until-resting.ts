import type { Client } from '@temporalio/client';
import { runStatus } from '../core/run/status.js';
import type { RunStatus } from '../core/state/status.js';
import type { Outcome } from '../core/transcript/outcome.js';
import { followSegments } from '../history/follow-history.js';

type Resting = Pick<RunStatus, 'status' | 'pending' | 'outcome' | 'queued'>;

/** The status of a run from which a reader waits. */
type Known = Resting & Pick<RunStatus, 'id' | 'runId' | 'historyLength'>;

/**
 * Whether a turn goes on only after someone has acted: decided, sent a message, or resumed the run. A
 * decision that is being checked needs no one else, and a blocked run keeps trying.
 */
function isResting({ status, pending, outcome, queued }: Resting): boolean {
  // After the end of its newest turn, a run waits, but that turn has its result.
  if (outcome !== null && queued === 0) return false;
  if (status === 'waiting_decision') return pending.some(({ checking }) => checking !== true);
  return status === 'waiting_message' || status === 'paused';
}

/**
 * Returns the result that `wait` waits for, or null as soon as the run rests; see `isResting`. `known`:
 * the status from which to wait.
 */
export async function resultUnlessResting(
  client: Client,
  { known, signal }: { readonly known: Known; readonly signal: AbortSignal },
  wait: (signal: AbortSignal) => Promise<Outcome | null>,
): Promise<Outcome | null> {
  if (isResting(known)) return null;
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const rest = untilResting(client, known, either);
  try {
    return await Promise.race([
      wait(either),
      rest.then((rests) => (rests ? null : new Promise<never>(() => undefined))),
    ]);
  } finally {
    over.abort();
  }
}

/**
 * Waits until a turn of a run rests; see `isResting`. `known`: the status from which to wait. Returns
 * false if the run ends or the signal aborts first.
 */
async function untilResting(client: Client, known: Known, signal: AbortSignal): Promise<boolean> {
  const { id, runId } = known;
  for await (const next of followSegments(client, { id, runId, signal })) {
    const { lastEvent, state, ended } = next.view;
    // The history is read from its beginning, where the run may have rested before.
    if (next.runId === runId && lastEvent < known.historyLength) continue;
    if (state === null || ended !== null) continue;
    if (isResting(runStatus(state, { ended: null, run: id }))) return true;
  }
  return false;
}
