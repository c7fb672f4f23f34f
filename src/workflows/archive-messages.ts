import { workflowInfo } from '@temporalio/workflow';
import type { ArchiveMessagesInput } from '../core/contract.js';
import { recordNow } from './run-context.js';
import { countOverflow } from '../core/segments/carry.js';
import { chunkedLength } from '../core/transcript/transcript.js';
import { WORK } from '../core/work/work.js';
import {
  archiveMessages,
  archiveMessagesOnCancel,
  archiveMessagesBlocked,
  archiveMessagesAtEnd,
} from './activities.js';
import { failureFact } from './activity-result.js';
import type { RunContext } from './run-context.js';
import { blobCheck, blockedField, activityStart, doWork } from './do-work.js';

/**
 * The number of events at which a segment must end soon: the server ends a run at 51,200 events or
 * 50 MiB.
 */
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
  // This applies even without a new message: the archive links the history of each segment to the
  // previous one.
  const archive = run.state.archives ? wholeRange(run) : null;
  if (count === 0 && archive === null) return true;
  const chunk = count === 0 ? null : { from, to: from + count };
  const { historyLength, historySize } = workflowInfo();
  const must = historyLength >= MAX_EVENTS || historySize >= MAX_BYTES;
  return (await store(run, { archive, chunk }, must)) === null;
}

/**
 * Archives messages before a compaction removes them from memory. `must`: the run cannot continue
 * without it.
 */
export async function archiveForCompaction(
  run: RunContext,
  { cut, must }: { readonly cut: number; readonly must: boolean },
): Promise<void> {
  await store(run, { archive: unarchivedRange(run), chunk: null, cut }, must);
}

/** Stores messages. Returns the failure of the store, or null. */
function store(
  run: RunContext,
  messages: Pick<ArchiveMessagesInput, 'archive' | 'chunk' | 'cut'>,
  must: boolean,
): Promise<unknown> {
  const { firstExecutionRunId: firstRunId } = workflowInfo();
  const input = { firstRunId, ...messages, ...(must && { must: true as const }) };
  return doWork(run, {
    name: WORK.archive,
    activity: (step) => {
      if (step.as === 'check') return blobCheck(WORK.archive, step);
      const taskInput = { ...input, ...blockedField(step, ['storage']) };
      return activityStart(
        'archiveMessages',
        taskInput,
        must ? archiveMessagesBlocked : archiveMessages,
      );
    },
  });
}

/**
 * Archives the remaining messages at the end of the run. If that fails, they are still in the
 * history.
 */
export async function archiveAtEnd(run: RunContext): Promise<void> {
  if (run.state.archives !== true) return;
  const archive = wholeRange(run);
  const firstRunId = workflowInfo().firstExecutionRunId;
  const isCanceled = run.state.ending === 'cancelled';
  const activity = isCanceled ? archiveMessagesOnCancel : archiveMessagesAtEnd;
  const input = { firstRunId, archive, chunk: null };
  const task = { activity: 'archiveMessages', input };
  recordNow(run, { type: 'scheduled', task });
  try {
    const result = await activity(input);
    recordNow(run, { type: 'completed', task, result });
  } catch (error) {
    // The worker logs the reason.
    recordNow(run, failureFact(task, error));
  }
}

/** Returns the range of messages that are not in the archive yet; null if there are none. */
function unarchivedRange(run: RunContext): { from: number; to: number } | null {
  const range = wholeRange(run);
  return run.state.archives && range.to > range.from ? range : null;
}

/** Returns the range of messages that are not in the archive yet, which may be empty. */
function wholeRange({ state }: RunContext): { from: number; to: number } {
  return { from: state.archived, to: state.transcript.next };
}
