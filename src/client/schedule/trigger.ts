import { setTimeout as pause } from 'node:timers/promises';
import type { ScheduleDescription, ScheduleHandle } from '@temporalio/client';
import { type Overlap, overlapOf, overlapPolicy } from './options.js';

/** What a trigger of a schedule has done. */
export interface TriggerResult {
  /**
   * `waits`: until an earlier firing has ended. `skipped`: since an earlier one has not ended. Null if that was
   * not seen within 3 s, for example after a second trigger within a second, or while the server is busy.
   */
  readonly firing: 'fired' | 'waits' | 'skipped' | null;
  /** The id of the run that was started; with `to`, of the workflow that sends the message. Only for `fired`. */
  readonly run?: string;
  /** It waits in place of the firings that waited before, which are dropped: so does `cancel_other`. */
  readonly replaces?: true;
}

/** How long the server may take to act on a trigger. */
const PATIENCE_MS = 3_000;
const READ_EVERY_MS = 100;

/** Options of `trigger`. */
interface TriggerOptions {
  readonly overlap?: Overlap;
}

/** Returns what triggers a schedule that was read. */
export function triggering({ overlap }: TriggerOptions) {
  const given = overlap === undefined ? undefined : overlapPolicy(overlap);
  return async (handle: ScheduleHandle, { policies }: ScheduleDescription): Promise<void> => {
    // Without a policy, the SDK sends `ALLOW_ALL`, whose runs no later firing sees.
    await handle.trigger(given ?? policies.overlap);
  };
}

/** The policies with which a firing takes the place of those that wait. */
const REPLACING: readonly string[] = ['cancel_other', 'terminate_other'];

/**
 * Waits a moment until the description of a schedule shows what the server did on a trigger. Never rejects: the
 * schedule is triggered already. `description`: the one before the trigger.
 */
export async function seeFiring(
  {
    handle,
    description: before,
  }: { readonly handle: ScheduleHandle; readonly description: ScheduleDescription },
  { overlap = overlapOf(before.policies.overlap) }: { readonly overlap?: string },
): Promise<TriggerResult> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const after = await handle.describe().catch(() => null);
    if (after === null) return { firing: null };
    const firing = firingOf(before, after);
    const run = after.info.recentActions.at(-1)?.action.workflow.workflowId;
    if (firing === 'fired') return { firing, ...(run !== undefined && { run }) };
    const replaces = firing === 'waits' && REPLACING.includes(overlap) && bufferedIn(before) > 0;
    if (firing !== null || performance.now() > until)
      return { firing, ...(replaces && { replaces }) };
    await pause(READ_EVERY_MS);
  }
}

/** Returns what the server did. Two changes at once may be about another firing, so they say nothing. */
function firingOf(
  before: ScheduleDescription,
  after: ScheduleDescription,
): TriggerResult['firing'] {
  const [was, is] = [before.info, after.info];
  const changes = [
    is.numActionsTaken > was.numActionsTaken && 'fired',
    is.numActionsSkippedOverlap > was.numActionsSkippedOverlap && 'skipped',
    bufferedIn(after) > bufferedIn(before) && 'waits',
  ] as const;
  const [first, second] = changes.filter((change) => change !== false);
  return first === undefined || second !== undefined ? null : first;
}

/** Returns the number of firings that wait until an earlier one has ended. */
export function bufferedIn({ raw }: Pick<ScheduleDescription, 'raw'>): number {
  return Number(raw.info?.bufferSize ?? 0);
}
