import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { ArchiveError, type Archive, type ArchivedRun } from '../storage/archive.js';
import type { Message } from '../core/transcript/messages.js';
import { within } from '../storage/within.js';
import type { KeepMessagesInput, KeepMessagesResult } from '../core/contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { ownWorkflow } from './query-workflow.js';
import { storageBlock, storageFault } from './storage.js';
import { writeChunk } from './model/prompt-chunk.js';

/** Less than the activity has: a store that hangs is reported as what it is. */
const ARCHIVE_LIMIT_MS = 12_000;

/**
 * Keeps messages that are about to leave the history: in the archive for people, in the blob store
 * for the prompt. Both know what they have already, so an attempt that is repeated does no harm.
 */
export async function keepMessages(
  deps: ActivityDependencies,
  input: KeepMessagesInput,
): Promise<KeepMessagesResult> {
  try {
    return await kept(deps, input);
  } catch (error) {
    const fault = storageFault(error);
    if (fault === null) throw error;
    Context.current().log.warn('messages cannot be kept', { message: fault.message });
    if (input.must) throw storageBlock(fault, { isProbe: input.blocked === 'storage' });
    // The run goes on where it is, and asks again later.
    const { message } = fault;
    throw ApplicationFailure.create({ type: 'storage', message, nonRetryable: true });
  }
}

async function kept(
  deps: ActivityDependencies,
  { firstRunId, archive, chunk }: KeepMessagesInput,
): Promise<KeepMessagesResult> {
  const context = Context.current();
  const { namespace, workflowExecution } = context.info;
  const own = ownWorkflow(context, deps);
  if (archive !== null) {
    const run = { namespace, id: workflowExecution?.workflowId ?? '', firstRunId };
    const messages = await own.said(archive.from, archive.to);
    await appended(deps.archive, run, messages);
  }
  if (chunk === null) return {};
  return { blob: await deps.blobs.put(writeChunk(await own.prompt(chunk.from, chunk.to))) };
}

/** Whatever stands behind the archive: it answers in time, or it is down. */
async function appended(
  archive: Archive,
  run: ArchivedRun,
  messages: readonly Message[],
): Promise<void> {
  try {
    await within(ARCHIVE_LIMIT_MS, () => archive.append(run, messages));
  } catch (cause) {
    if (cause instanceof ArchiveError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ArchiveError('unwritable', `the archive cannot be written: ${why}`, { cause });
  }
}
