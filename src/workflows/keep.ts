import { workflowInfo } from '@temporalio/workflow';
import { overflow } from '../core/carry.js';
import type { Interruption } from '../core/events.js';
import { apply } from '../core/loop.js';
import { chunkedLength } from '../core/transcript.js';
import { keepMessages, keepMessagesBriefly } from './activities.js';
import { resumedSince, unlessInterrupted, type Session } from './session.js';

/** An archive that is down is asked again after this time, or at once by `resume`. */
const AGAIN_MS = 60_000;

/** Before a new segment: the archive has everything, and the older messages lie in the blob store. */
export async function keepForSegment(session: Session): Promise<boolean> {
  const { transcript } = session.state;
  const count = overflow(session.state);
  const from = chunkedLength(transcript);
  const archive = archiveRange(session);
  if (count === 0 && archive === null) return true;
  try {
    const { blob } = await keepMessages({
      firstRunId: workflowInfo().firstExecutionRunId,
      archive,
      chunk: count === 0 ? null : { from, to: from + count },
    });
    const chunk = blob === undefined ? null : { blob, count };
    apply(session, { type: 'messages-kept', archived: archive?.to ?? 0, chunk });
    return true;
  } catch {
    return false;
  }
}

/**
 * Before a compaction takes them out of memory the messages go to the archive, where there is one.
 * `must`: the run cannot go on without the compaction, and is blocked, visibly, while the archive is down.
 */
export async function keepForArchive(
  session: Session,
  must: boolean,
): Promise<boolean | Interruption> {
  if (await archiveWith(session, keepMessages)) return true;
  if (!must) return false;
  const message =
    'the archive cannot be written (see the log of the worker), and the conversation has to be ' +
    'summarised before it goes on';
  session.blocked.set('archive', { reason: 'storage', message });
  session.changed();
  try {
    for (;;) {
      const { resumes } = session;
      const by = await unlessInterrupted(session, () => resumedSince(session, resumes, AGAIN_MS));
      if (by !== null) return by;
      if (await archiveWith(session, keepMessages)) return true;
    }
  } finally {
    session.blocked.delete('archive');
    session.changed();
  }
}

/** At the end of the run. The history has them too, for as long as the server keeps it. */
export async function archiveRest(session: Session): Promise<void> {
  await archiveWith(session, keepMessagesBriefly);
}

async function archiveWith(session: Session, keep: typeof keepMessages): Promise<boolean> {
  const archive = archiveRange(session);
  if (archive === null) return true;
  try {
    const firstRunId = workflowInfo().firstExecutionRunId;
    await keep({ firstRunId, archive, chunk: null });
    apply(session, { type: 'messages-kept', archived: archive.to, chunk: null });
    return true;
  } catch {
    // The worker's log has the reason.
    return false;
  }
}

function archiveRange({ input, state }: Session): { from: number; to: number } | null {
  const wanted = input.archive ?? state.open;
  const { next } = state.transcript;
  return wanted && next > state.archived ? { from: state.archived, to: next } : null;
}
