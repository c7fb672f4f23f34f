import {
  ChildWorkflowFailure,
  workflowInfo,
  type ChildWorkflowOptions,
} from '@temporalio/workflow';
import { calledId } from '../core/calls/idempotency.js';
import type { ParentClose } from '../core/definition/tool-definition.js';
import type {
  InputOf,
  OutputOf,
  PromptName,
  PromptOutput,
  PromptsOf,
  StartPrompt,
} from '../core/definition/prompt-types.js';
import { sha256Hex } from '../core/digest.js';
import type { RunInput } from '../core/input/input.js';
import type { Outcome } from '../core/outcome.js';
import { toChildEnd, runChildOnce } from './calls/run-child-once.js';

const NAME = 'agent';

/** The input of an agent's run, typed for the agent. */
export type AgentRunInput<
  Agent,
  Prompt extends PromptName<PromptsOf<Agent>>,
> = unknown extends Agent
  ? RunInput
  : Omit<RunInput, 'input' | 'prompt' | 'promptArgs'> & {
      readonly input?: InputOf<Agent>;
    } & StartPrompt<PromptsOf<Agent>, Prompt>;

/**
 * Runs an agent from a workflow of your own. The agent's type determines the types of the arguments
 * and the output; a second type specifies the prompt. Returns the outcome regardless of status: a
 * limit, a refusal, or a failed turn is not an exception.
 *
 * After a reset of your workflow, the same call (the first with this input, the second, and so on)
 * is the same run. An existing run is followed, and one that must run again keeps its idempotency
 * keys. Other runs with a `workflowId` of yours are not affected.
 *
 * Rejects with the `ChildWorkflowFailure` of a run that left no outcome because it was terminated,
 * and when your own workflow is canceled.
 *
 * @example
 * ```ts
 * import { runAgent } from 'perdure/workflow';
 *
 * import type { Typed } from 'perdure';
 *
 * // Or `typeof researcher`, of `import type`: the code of an agent never runs in a workflow.
 * type Researcher = Typed<{ cause: string }>;
 *
 * export async function investigate(incident: string): Promise<string | undefined> {
 *   const message = `Find the cause of ${incident}`;
 *   const outcome = await runAgent<Researcher>({ agent: 'researcher', message });
 *   return outcome.output?.cause;
 * }
 * ```
 */
export async function runAgent<
  Agent = unknown,
  const Prompt extends PromptName<PromptsOf<Agent>> = never,
>(
  input: AgentRunInput<Agent, Prompt>,
  options: Pick<
    ChildWorkflowOptions,
    'workflowId' | 'taskQueue' | 'parentClosePolicy' | 'searchAttributes' | 'memo' | 'priority'
  > = {},
): Promise<Outcome<PromptOutput<PromptsOf<Agent>, Prompt, OutputOf<Agent>>>> {
  const { namespace, workflowId, originalExecutionRunId } = workflowInfo();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the run checks its input
  const { called: _, ...runInput } = input as RunInput;
  const call = JSON.stringify([options.workflowId ?? null, runInput]);
  // The id of the original execution: unlike the run id, it survives a reset.
  const callPlace = [namespace, workflowId, originalExecutionRunId, call, timesCalled(call)];
  const key = sha256Hex(JSON.stringify(callPlace));
  const close = closeOf(options.parentClosePolicy);
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
    return (await runChildOnce(
      runInput,
      { key, close, summary: `agent ${input.agent}` },
      {
        ...options,
        workflowId: options.workflowId ?? calledId({ workflowId, name: NAME, key }, sha256Hex),
      },
    )) as never;
  } catch (error) {
    const { outcome } = toChildEnd(error);
    if (!(error instanceof ChildWorkflowFailure) || outcome === null) throw error;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
    return outcome as never;
  }
}

const CALLS = Symbol.for('perdure.runAgent.calls');
// oxlint-disable-next-line no-restricted-globals -- each workflow has a global object of its own
const workflowGlobal = (): object => globalThis;

/**
 * Counts the calls of this workflow with the same content, from 1. The count belongs to the
 * workflow's own global object: modules may be shared by all workflows of a worker.
 */
function timesCalled(content: string): number {
  const known: unknown = Reflect.get(workflowGlobal(), CALLS);
  const counts: Map<unknown, unknown> = known instanceof Map ? known : new Map();
  Reflect.set(workflowGlobal(), CALLS, counts);
  const times = Number(counts.get(content) ?? 0) + 1;
  counts.set(content, times);
  return times;
}

function closeOf(policy: ChildWorkflowOptions['parentClosePolicy']): ParentClose {
  if (policy?.endsWith('ABANDON')) return 'abandon';
  return policy?.endsWith('REQUEST_CANCEL') ? 'request_cancel' : 'terminate';
}
