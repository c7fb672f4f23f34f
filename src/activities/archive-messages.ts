import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { archiveHistory } from '../history/archived-run.js';
import { ArchiveError, type Archive } from '../storage/archive.js';
import { within } from '../storage/within.js';
import type { ArchiveMessagesInput, ArchiveMessagesResult } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { formatChunk } from './model/prompt-chunk.js';
import { queryWorkflow } from './query-workflow.js';
import { findStorageFault, storageFailure } from './storage-faults.js';

/** Timeout in ms, shorter than the activity's, so a store that hangs is reported as such. */
const ARCHIVE_LIMIT_MS = 12_000;

/**
 * Stores data that is about to be deleted: the history of the segment so far in the archive, and a
 * part of the prompt in the blob store. Both stores are idempotent, so the activity can be retried.
 * If a store is down, the failure blocks the run if `must` is set; otherwise the run continues, and
 * archives later.
 */
export async function archiveMessages(
  deps: ActivityDependencies,
  input: ArchiveMessagesInput,
): Promise<ArchiveMessagesResult> {
  try {
    return await storeMessages(deps, input);
  } catch (error) {
    const fault = findStorageFault(error);
    if (fault === null) throw error;
    const { message } = fault;
    const { log, info } = Context.current();
    log.warn('messages cannot be archived', { message });
    if (input.must) throw storageFailure(fault, { blocked: input.blocked });
    const report = {
      type: 'not_archived',
      attempt: info.attempt,
      waitMs: 0,
      at: Date.now(),
      message: message.slice(0, 300),
    };
    const details = [{ reports: [report] }];
    throw ApplicationFailure.create({ type: 'storage', message, nonRetryable: true, details });
  }
}

async function storeMessages(
  deps: ActivityDependencies,
  { firstRunId, archive, chunk }: ArchiveMessagesInput,
): Promise<ArchiveMessagesResult> {
  const context = Context.current();
  if (archive !== null) await archiveOwnHistory(context, deps.archive, firstRunId);
  if (chunk === null) return {};
  const messages = await queryWorkflow(context, deps).prompt(chunk.from, chunk.to);
  return { blob: await deps.blobs.put(formatChunk(messages)) };
}

/** Rejects with an `ArchiveError` if an archive of any driver fails or does not answer. */
async function archiveOwnHistory(
  { client, info }: Context,
  archive: Archive,
  firstRunId: string,
): Promise<void> {
  const { workflowId: id = '', runId = '' } = info.workflowExecution ?? {};
  // As the server has it: what is encoded there does not leave it decoded.
  const history = await client.workflow.getHandle(id, runId).fetchHistory();
  const segment = { firstRunId, runId, history };
  const run = { namespace: info.namespace, id };
  try {
    await within(ARCHIVE_LIMIT_MS, () => archiveHistory(archive, run, segment));
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ArchiveError(`the archive cannot be written: ${reason}`, {
      kind: 'unwritable',
      cause,
    });
  }
}
