import type { Context, Info } from '@temporalio/activity';
import type { CallModelInput } from '../../core/contract.js';
import type { ContextFields } from '../../core/input/turn-context.js';
import type { Json } from '../../core/json.js';
import type { PromptMessage } from '../../core/transcript/messages.js';
import { pinnedAt, type PinnedAgent } from '../definitions.js';
import type { ActivityDependencies } from '../dependencies.js';
import { queryWorkflow } from '../query-workflow.js';
import { readRunContext } from '../run-context.js';
import type { PromptKey } from './transcript-cache.js';

/** The data to which an activity's input refers by digest. */
export interface Prompt {
  /** The workflow id of the run; empty if a workflow did not schedule the activity. */
  readonly run: string;
  readonly pinned: PinnedAgent;
  readonly name: PromptKey;
  readonly messages: readonly PromptMessage[];
  /** The run's `context`, for the functions of its author. */
  readonly userContext: Json;
}

/**
 * Returns the agent, the messages, and the context that an activity's input names, from this
 * worker's memory or else from the run. Rejects with a `StoreFault` if the blob store cannot be
 * read.
 */
export async function rebuildPrompt(
  deps: ActivityDependencies,
  context: Context,
  input: Pick<
    CallModelInput,
    'definition' | 'node' | 'prompt' | 'upTo' | 'head' | keyof ContextFields
  >,
): Promise<Prompt> {
  const queries = queryWorkflow(context, deps);
  const found = await deps.definitions.find(input.definition, () => queries.definition());
  const pinned = pinnedAt(found, input);
  const name = { run: runKey(context.info), upTo: input.upTo, head: input.head };
  const messages = await deps.transcripts.prompt(name, (from, to) => queries.prompt(from, to));
  // It is read before the model is paid, so it cannot be missing when the reply is read.
  const userContext = await readRunContext(input, deps.blobs);
  const run = context.info.workflowExecution?.workflowId ?? '';
  return { run, pinned, name, messages, userContext };
}

/** Returns the key of a run in this worker's memory: its namespace and workflow id. */
export function runKey({ namespace, workflowExecution }: Info): string {
  return `${namespace}/${workflowExecution?.workflowId ?? ''}`;
}
