import { workflowInfo } from '@temporalio/workflow';
import type { ArchiveMessagesInput } from '../core/contract.js';
import type { Interruption } from '../core/events.js';
import { isArchiveResult, type ArchiveMessagesResult } from '../core/guards/recorded.js';
import { apply } from '../core/loop.js';
import { countOverflow } from '../core/segments/carry.js';
import { chunkedLength } from '../core/transcript/transcript.js';
import {
  archiveMessages,
  archiveMessagesAtOnce,
  archiveMessagesBlocked,
  archiveMessagesBriefly,
} from './activities.js';
import { checkedResult } from './activity-result.js';
import { retryInSegment } from './blocking.js';
import { inFlight, takeInterruption, type RunContext } from './run-context.js';

/** A history this long has to end soon: the server ends a run at 51,200 events or 50 MiB. */
const MAX_EVENTS = 30_000;
const MAX_BYTES = 30 * 1024 * 1024;

/**
 * Before a new segment: archives all messages, and offloads the older ones to the blob store. A run
 * whose store is down stays in its segment while there is room; after that, it is blocked visibly.
 * Returns whether the segment can end.
 */
export async function archiveForNextSegment(run: RunContext): Promise<boolean> {
  const { transcript } = run.state;
  const count = countOverflow(run.state);
  const from = chunkedLength(transcript);
  const archive = unarchivedRange(run);
  if (count === 0 && archive === null) return true;
  const chunk = count === 0 ? null : { from, to: from + count };
  const { historyLength, historySize } = workflowInfo();
  const must = historyLength >= MAX_EVENTS || historySize >= MAX_BYTES;
  const result = await store(run, { archive, chunk }, must);
  if (result === null) return false;
  const { blob } = result;
  const stored = blob === undefined ? null : { blob, count };
  apply(run, { type: 'messages-archived', archived: archive?.to ?? 0, chunk: stored });
  return true;
}

/**
 * Before a compaction removes messages from memory: archives them if the run has an archive. `must`:
 * the run cannot continue without the compaction, so it is blocked while the archive is down. Returns
 * whether the messages are archived, or what interrupted the work.
 */
export async function archiveForCompaction(
  run: RunContext,
  must: boolean,
): Promise<boolean | Interruption> {
  const archive = unarchivedRange(run);
  if (archive === null) return true;
  const result = await store(run, { archive, chunk: null }, must);
  if (result === null) return takeInterruption(run) ?? false;
  apply(run, { type: 'messages-archived', archived: archive.to, chunk: null });
  return true;
}

/** Returns null if the store is down or the work was interrupted. */
async function store(
  run: RunContext,
  messages: Pick<ArchiveMessagesInput, 'archive' | 'chunk'>,
  must: boolean,
): Promise<ArchiveMessagesResult | null> {
  const { firstExecutionRunId: firstRunId } = workflowInfo();
  const { resumes } = run;
  const input = { firstRunId, ...messages };
  const attempt = async (blocked?: 'storage'): Promise<ArchiveMessagesResult> =>
    checkedResult(
      'archiveMessages',
      isArchiveResult,
      await (must
        ? archiveMessagesBlocked({ ...input, must, ...(blocked && { blocked }) })
        : archiveMessages(input)),
    );
  try {
    return await inFlight(run, () => attempt());
  } catch (error) {
    if (!must) return null;
    const work = { name: 'archive', reasons: ['storage'], cancelable: true, attempt } as const;
    return await retryInSegment(run, work, { error, resumes }).catch(() => null);
  }
}

/** At the end of the run: archives the rest. If that fails, the history still has the messages. */
export async function archiveAtEnd(run: RunContext): Promise<void> {
  const archive = unarchivedRange(run);
  if (archive === null) return;
  try {
    const firstRunId = workflowInfo().firstExecutionRunId;
    const isCanceled = run.state.ending === 'cancelled';
    const activity = isCanceled ? archiveMessagesAtOnce : archiveMessagesBriefly;
    checkedResult(
      'archiveMessages',
      isArchiveResult,
      await activity({ firstRunId, archive, chunk: null }),
    );
    apply(run, { type: 'messages-archived', archived: archive.to, chunk: null });
  } catch {
    // The worker logs the reason.
  }
}

/** The numbers of the messages that are not in the archive yet; null if there are none. */
function unarchivedRange({ input, state }: RunContext): { from: number; to: number } | null {
  const hasArchive = input.archive ?? state.open;
  const { next } = state.transcript;
  return hasArchive && next > state.archived ? { from: state.archived, to: next } : null;
}
