import type { Context } from '@temporalio/activity';
import { BlobError } from '../../storage/blob-store.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { Message } from '../../core/transcript/messages.js';
import { ToolError } from '../../tools/tool-error.js';
import type { ActivityDependencies } from '../dependencies.js';
import { ownWorkflow } from '../query-workflow.js';
import { storageBlock, storageFault } from '../storage.js';

/**
 * A tool's error as the model is to read it. Throws where the worker's store caused it, so that the
 * run is blocked, unless the tool may have acted before it read. A text that a model asked for, and
 * that this run never had, is the model's own mistake.
 */
export async function beyondStorage(
  deps: ActivityDependencies,
  context: Context,
  error: unknown,
  { effect }: Pick<ToolDefinition, 'effect'>,
): Promise<unknown> {
  const fault = storageFault(error);
  if (fault === null || effect === 'once') return error;
  const isMissing = error instanceof BlobError && error.kind === 'missing';
  if (isMissing && fault.blob !== undefined && !(await isOwn(deps, context, fault.blob))) {
    return new ToolError(
      `there is no text ${fault.blob} in this conversation; copy the ref from the note where a text was cut`,
    );
  }
  throw storageBlock(fault);
}

/** Whether the run has stored this blob. By its records alone: texts may name what they like. */
async function isOwn(
  deps: ActivityDependencies,
  context: Context,
  sha256: string,
): Promise<boolean> {
  try {
    const messages = await ownWorkflow(context, deps).prompt(0, Number.MAX_SAFE_INTEGER);
    return messages.some((message) => hashesOf(message).includes(sha256));
  } catch (error) {
    // Where an earlier part of the conversation is missing too, the store is what is wrong.
    if (storageFault(error) !== null) return true;
    throw error;
  }
}

function hashesOf(message: Message): readonly string[] {
  const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
  return [message, ...calls].flatMap(({ blob }) => (blob === undefined ? [] : [blob.sha256]));
}
