import type { Context, Info } from '@temporalio/activity';
import type { PromptMessage } from '../../core/transcript/messages.js';
import type { CallModelInput } from '../../core/contract.js';
import type { PinnedAgent } from '../definitions.js';
import type { ActivityDependencies } from '../dependencies.js';
import { ownWorkflow } from '../query-workflow.js';
import type { PromptName } from './transcript-cache.js';

/** The agent and the messages that an activity's input names: from this worker's memory, else from the run. */
export async function rebuildPrompt(
  deps: ActivityDependencies,
  context: Context,
  input: Pick<CallModelInput, 'definition' | 'upTo' | 'head'>,
): Promise<{ pinned: PinnedAgent; name: PromptName; messages: readonly PromptMessage[] }> {
  const own = ownWorkflow(context, deps);
  const pinned = await deps.definitions.find(input.definition, () => own.definition());
  const name: PromptName = {
    run: runKey(context.info),
    upTo: input.upTo,
    head: input.head,
  };
  const messages = await deps.transcripts.prompt(name, (from, to) => own.prompt(from, to));
  return { pinned, name, messages };
}

export function runKey({ namespace, workflowExecution }: Info): string {
  return `${namespace}/${workflowExecution?.workflowId ?? ''}`;
}
