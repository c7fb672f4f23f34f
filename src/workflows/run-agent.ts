import {
  ChildWorkflowFailure,
  workflowInfo,
  type ChildWorkflowOptions,
} from '@temporalio/workflow';
import { calledId } from '../core/calls/idempotency.js';
import type { ParentClose } from '../core/definition/definition.js';
import { sha256Hex } from '../core/digest.js';
import type { RunInput } from '../core/input/input.js';
import type { Outcome } from '../core/outcome.js';
import { toChildEnd, runChildOnce } from './calls/run-child-once.js';

const NAME = 'agent';

/**
 * Runs an agent from a workflow of your own. Returns its outcome whatever the status: a limit, a
 * refusal, or a failed turn is not an exception.
 *
 * After a reset of your workflow, the same call (the first with this input, the second, and so on) is
 * the same run: an existing run is followed, and one that has to run again keeps its idempotency keys.
 * Other runs that have a `workflowId` of yours are left alone.
 *
 * Rejects with the `ChildWorkflowFailure` of a run that left no outcome because it was terminated, and
 * when your own workflow is canceled.
 *
 * @example
 * ```ts
 * import { runAgent } from 'perdure/workflow';
 *
 * export async function investigate(incident: string): Promise<string | null> {
 *   const outcome = await runAgent({ agent: 'researcher', message: `Find the cause of ${incident}` });
 *   return outcome.status === 'completed' ? outcome.answer : null;
 * }
 * ```
 */
export async function runAgent(
  input: RunInput,
  options: Pick<
    ChildWorkflowOptions,
    'workflowId' | 'taskQueue' | 'parentClosePolicy' | 'searchAttributes' | 'memo' | 'priority'
  > = {},
): Promise<Outcome> {
  const { namespace, workflowId, originalExecutionRunId } = workflowInfo();
  const { called: _, ...given } = input;
  const call = JSON.stringify([options.workflowId ?? null, given]);
  // The id of the original execution: unlike the run id, it survives a reset.
  const callPlace = [namespace, workflowId, originalExecutionRunId, call, timesCalled(call)];
  const key = sha256Hex(JSON.stringify(callPlace));
  const close = closeOf(options.parentClosePolicy);
  try {
    return await runChildOnce(
      given,
      { key, close, summary: `agent ${input.agent}` },
      {
        ...options,
        workflowId: options.workflowId ?? calledId({ workflowId, name: NAME, key }, sha256Hex),
      },
    );
  } catch (error) {
    const { outcome } = toChildEnd(error);
    if (!(error instanceof ChildWorkflowFailure) || outcome === null) throw error;
    return outcome;
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
