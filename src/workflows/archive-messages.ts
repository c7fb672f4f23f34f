import { workflowInfo } from '@temporalio/workflow';
import type { KeepMessagesInput } from '../core/contract.js';
import { overflow } from '../core/segments/carry.js';
import type { Interruption } from '../core/events.js';
import { apply } from '../core/loop.js';
import { isKept, type KeepMessagesResult } from '../core/guards/recorded.js';
import { chunkedLength } from '../core/transcript/transcript.js';
import {
  keepMessages,
  keepMessagesAtOnce,
  keepMessagesBlocked,
  keepMessagesBriefly,
} from './activities.js';
import { mendInPlace } from './blocking.js';
import { fitting } from './calls/recorded-result.js';
import { inFlight, takeInterruption, type Session } from './run-context.js';

/** A history this long has to be left soon: the server ends a run at 51,200 events or 50 MiB. */
const MOST_EVENTS = 30_000;
const MOST_BYTES = 30 * 1024 * 1024;

/**
 * Before a new segment, the archive has everything, and the older messages are in the blob store.
 * While there is room, a run whose store is down stays in its segment; then it is blocked, visibly.
 * @returns whether the segment can be left
 */
export async function keepForSegment(session: Session): Promise<boolean> {
  const { transcript } = session.state;
  const count = overflow(session.state);
  const from = chunkedLength(transcript);
  const archive = archiveRange(session);
  if (count === 0 && archive === null) return true;
  const chunk = count === 0 ? null : { from, to: from + count };
  const { historyLength, historySize } = workflowInfo();
  const must = historyLength >= MOST_EVENTS || historySize >= MOST_BYTES;
  const kept = await keep(session, { archive, chunk }, must);
  if (kept === null) return false;
  const { blob } = kept;
  const stored = blob === undefined ? null : { blob, count };
  apply(session, { type: 'messages-kept', archived: archive?.to ?? 0, chunk: stored });
  return true;
}

/**
 * Before a compaction takes them out of memory, the messages go to the archive, where there is one.
 * `must`: the run cannot go on without the compaction, and is blocked, visibly, while the archive is down.
 */
export async function keepForArchive(
  session: Session,
  must: boolean,
): Promise<boolean | Interruption> {
  const archive = archiveRange(session);
  if (archive === null) return true;
  const kept = await keep(session, { archive, chunk: null }, must);
  // What broke it off ends the turn; that of a segment's change is left for the work that follows.
  if (kept === null) return takeInterruption(session) ?? false;
  apply(session, { type: 'messages-kept', archived: archive.to, chunk: null });
  return true;
}

/** @returns null where the store is down, or where it was broken off */
async function keep(
  session: Session,
  what: Pick<KeepMessagesInput, 'archive' | 'chunk'>,
  must: boolean,
): Promise<KeepMessagesResult | null> {
  const { firstExecutionRunId: firstRunId } = workflowInfo();
  const { resumes } = session;
  const input = { firstRunId, ...what };
  const attempt = async (blocked?: 'storage'): Promise<KeepMessagesResult> =>
    fitting(
      'keepMessages',
      isKept,
      await (must
        ? keepMessagesBlocked({ ...input, must, ...(blocked && { blocked }) })
        : keepMessages(input)),
    );
  try {
    return await inFlight(session, () => attempt());
  } catch (error) {
    if (!must) return null;
    const work = { name: 'archive', reasons: ['storage'], breakable: true, attempt } as const;
    return await mendInPlace(session, work, { error, resumes }).catch(() => null);
  }
}

/** At the end of the run. The history has them too, for as long as the server keeps it. */
export async function archiveRest(session: Session): Promise<void> {
  const archive = archiveRange(session);
  if (archive === null) return;
  try {
    const firstRunId = workflowInfo().firstExecutionRunId;
    const isCancelled = session.state.ending === 'cancelled';
    const keepNow = isCancelled ? keepMessagesAtOnce : keepMessagesBriefly;
    fitting('keepMessages', isKept, await keepNow({ firstRunId, archive, chunk: null }));
    apply(session, { type: 'messages-kept', archived: archive.to, chunk: null });
  } catch {
    // The worker's log has the reason.
  }
}

function archiveRange({ input, state }: Session): { from: number; to: number } | null {
  const wanted = input.archive ?? state.open;
  const { next } = state.transcript;
  return wanted && next > state.archived ? { from: state.archived, to: next } : null;
}
