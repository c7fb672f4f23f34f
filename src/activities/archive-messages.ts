import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { ArchiveError, type Archive, type ArchivedRun } from '../storage/archive.js';
import { within } from '../storage/within.js';
import type { ArchiveMessagesInput, ArchiveMessagesResult } from '../core/contract.js';
import type { Message } from '../core/transcript/messages.js';
import type { ActivityDependencies } from './dependencies.js';
import { formatChunk } from './model/prompt-chunk.js';
import { queryWorkflow } from './query-workflow.js';
import { findStorageFault, storageFailure } from './storage-faults.js';

/** Shorter than the activity's timeout, so that a store that hangs is reported as such. */
const ARCHIVE_LIMIT_MS = 12_000;

/**
 * Stores messages that are about to leave the history: in the archive for people, and in the blob store for
 * the prompt. Both stores are idempotent, so the activity may be repeated. If a store is down, the failure
 * blocks the run if `must` is set; otherwise the run continues, and archives later.
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
    Context.current().log.warn('messages cannot be archived', { message });
    if (input.must) throw storageFailure(fault, { blocked: input.blocked });
    throw ApplicationFailure.create({ type: 'storage', message, nonRetryable: true });
  }
}

async function storeMessages(
  deps: ActivityDependencies,
  { firstRunId, archive, chunk }: ArchiveMessagesInput,
): Promise<ArchiveMessagesResult> {
  const context = Context.current();
  const { namespace, workflowExecution } = context.info;
  const queries = queryWorkflow(context, deps);
  if (archive !== null) {
    const run = { namespace, id: workflowExecution?.workflowId ?? '', firstRunId };
    const messages = await queries.messages(archive.from, archive.to);
    await appendToArchive(deps.archive, run, messages);
  }
  if (chunk === null) return {};
  return { blob: await deps.blobs.put(formatChunk(await queries.prompt(chunk.from, chunk.to))) };
}

/** Appends to an archive of any driver. Rejects with an `ArchiveError` if it fails or does not answer. */
async function appendToArchive(
  archive: Archive,
  run: ArchivedRun,
  messages: readonly Message[],
): Promise<void> {
  try {
    await within(ARCHIVE_LIMIT_MS, () => archive.append(run, messages));
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ArchiveError('unwritable', `the archive cannot be written: ${reason}`, { cause });
  }
}
