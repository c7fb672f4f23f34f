import { Context } from '@temporalio/activity';
import type { KeepMessagesInput, KeepMessagesResult } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { ownWorkflow } from './own-workflow.js';
import { writeChunk } from './prompt-chunk.js';

/**
 * Keeps messages that are about to leave the history: in the archive for people, in the blob store
 * for the prompt. Both know what they have already, so an attempt that is repeated does no harm.
 */
export async function keepMessages(
  deps: ActivityDependencies,
  { firstRunId, archive, chunk }: KeepMessagesInput,
): Promise<KeepMessagesResult> {
  const context = Context.current();
  const { namespace, workflowExecution } = context.info;
  const own = ownWorkflow(context, deps);
  if (archive !== null) {
    const run = { namespace, id: workflowExecution?.workflowId ?? '', firstRunId };
    await deps.archive.append(run, await own.said(archive.from, archive.to));
  }
  if (chunk === null) return {};
  return { blob: await deps.blobs.put(writeChunk(await own.prompt(chunk.from, chunk.to))) };
}
