import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  type ChildWorkflowOptions,
  executeChild,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  InputOf,
  OutputOf,
  ArgsOf,
  PromptName,
  PromptOutput,
  PromptsOf,
  StartPrompt,
} from '../../core/definition/agent-types.js';
import type { ParentClose } from '../../core/definition/tool-definition.js';
import { type FollowRunResult, isFollowResult, isOutcome } from '../../core/guards/recorded.js';
import { type RunInput, checkTenant } from '../../core/input/input.js';
import type { ChildEnd } from '../../core/run/complete-batch.js';
import type { FactOf } from '../../core/run/events.js';
import { sha256Hex } from '../../core/text/json.js';
import { calledId } from '../../core/transcript/call-result.js';
import type { Outcome } from '../../core/transcript/outcome.js';
import { followActivity } from '../activities.js';
import { checkedResult, failureFact, failureMessage } from '../do-work.js';
import type { AgentWorkflow } from '../messages/definitions.js';
import type { Observed } from '../run-context.js';

/** One call of an agent. */
interface AgentCall {
  /** The call's idempotency key; the keys of the called agent derive from it. */
  readonly key: string;
  readonly close: ParentClose;
  /** One line for people. */
  readonly summary: string;
  /** The call's id; empty for a workflow of another kind. */
  readonly call?: string;
  /** An earlier run for this call ended without an outcome. */
  readonly again?: boolean;
  /** The parent span of the run. */
  readonly span?: string | undefined;
  /** Receives the recorded events of the child as facts. */
  readonly observe?: (fact: ChildFact) => void;
}

type ChildFact = Observed<
  FactOf<'scheduled' | 'completed' | 'failed' | 'cancelled' | 'child-ended' | 'child-existed'>
>;

/**
 * Runs an agent as a child workflow, at most once per call. After a reset, the child may already
 * exist; an activity then follows that run and returns its outcome. If that run ended without an
 * outcome, the agent runs again under the same idempotency keys.
 *
 * Rejects with the `ChildWorkflowFailure` of a child that failed, was canceled, or left no outcome,
 * with the `ApplicationFailure` of `checkedResult` for a result that is not an outcome (any
 * workflow may have the id), and with `WorkflowExecutionAlreadyStartedError` if a run of another
 * origin has the id.
 */
export async function runChildOnce(
  input: RunInput,
  agentCall: AgentCall,
  options: ChildWorkflowOptions & { readonly workflowId: string },
): Promise<Outcome> {
  const { key, call = '', span, observe = () => undefined } = agentCall;
  let again = agentCall.again ?? false;
  let workflowIdReusePolicy: NonNullable<ChildWorkflowOptions['workflowIdReusePolicy']> =
    'REJECT_DUPLICATE';
  for (;;) {
    const { workflowId: started } = options;
    observe({ type: 'scheduled', task: { activity: 'agent', input: { call, run: started } } });
    try {
      const outcome = await executeChild<AgentWorkflow>('agent', {
        cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        ...options,
        workflowIdReusePolicy,
        args: [
          {
            ...input,
            called: { key, ...(again && { again }), ...(span !== undefined && { span }) },
          },
        ],
      });
      const checked = checkedResult('agent', isOutcome, outcome);
      observe({ type: 'child-ended', call, outcome: checked, message: '' });
      return checked;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) {
        observe({ type: 'child-ended', call, ...toChildEnd(error) });
        throw error;
      }
      observe({ type: 'child-existed', call });
      const found = await followChild(agentCall, options);
      if (found.type === 'ended') return found.outcome;
      if (found.type === 'other' && found.running) throw error;
      again ||= found.type === 'lost';
      workflowIdReusePolicy = 'ALLOW_DUPLICATE';
    }
  }
}

async function followChild(
  { key, close, summary, observe = () => undefined }: AgentCall,
  { workflowId, taskQueue }: ChildWorkflowOptions & { readonly workflowId: string },
): Promise<FollowRunResult> {
  const input = { run: workflowId, key, close };
  const task = { activity: 'followRun', input };
  observe({ type: 'scheduled', task });
  try {
    const result = await followActivity({ summary, close, taskQueue })(input);
    observe({ type: 'completed', task, result });
    return checkedResult('followRun', isFollowResult, result);
  } catch (error) {
    // A malformed result is already recorded as completed.
    observe(failureFact(task, error));
    throw error;
  }
}

/** Returns the end of a failed child, with the outcome from the details of the failure. */
function toChildEnd(error: unknown): ChildEnd {
  const wrapped = error instanceof ChildWorkflowFailure || error instanceof ActivityFailure;
  const cause = wrapped ? error.cause : error;
  const details =
    cause instanceof ApplicationFailure || cause instanceof CancelledFailure ? cause.details : [];
  const [first] = details ?? [];
  const message = cause instanceof Error ? cause.message : failureMessage(error);
  return { outcome: isOutcome(first) ? first : null, message };
}

const NAME = 'agent';

/** The input of an agent's run, typed for the agent. */
export type AgentRunInput<
  Agent,
  Prompt extends PromptName<PromptsOf<Agent>>,
> = unknown extends Agent
  ? RunInput
  : Omit<RunInput, 'args' | 'input' | 'prompt' | 'promptArgs'> & {
      readonly args?: ArgsOf<Agent>;
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
 * A workflow has no keys, so `workflowId` and `tenant` are not hashed by `hashIds` of `encryption`: put nothing
 * secret into them.
 *
 * @example
 * ```ts
 * import { runAgent } from 'perdure/workflow';
 *
 * import type { Typed } from 'perdure/client';
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
  const { namespace, workflowId, originalExecutionRunId, priority } = workflowInfo();
  const tenant = priority?.fairnessKey;
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
        ...sharesOf(runInput, options),
        workflowId:
          options.workflowId ?? calledId({ workflowId, name: NAME, key, tenant }, sha256Hex),
      },
    )) as never;
  } catch (error) {
    const { outcome } = toChildEnd(error);
    if (!(error instanceof ChildWorkflowFailure) || outcome === null) throw error;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the agent itself
    return outcome as never;
  }
}

/**
 * Returns the options that give the run its tenant's share. Without a tenant in its input, it has that of
 * the workflow. The memo names it for lists, which have no priority.
 */
function sharesOf(
  { tenant: own }: Pick<RunInput, 'tenant'>,
  { priority, memo }: Pick<ChildWorkflowOptions, 'priority' | 'memo'>,
): Pick<ChildWorkflowOptions, 'priority' | 'memo'> {
  // The server would refuse the command again and again, and the run refuses its input.
  if (checkTenant(own) !== null) return {};
  const tenant = priority?.fairnessKey ?? own ?? workflowInfo().priority?.fairnessKey;
  return {
    ...(own !== undefined && { priority: { fairnessKey: own, ...priority } }),
    ...(tenant && { memo: { tenant, ...memo } }),
  };
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
