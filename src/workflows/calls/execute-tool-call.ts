import { isCancellation, sleep } from '@temporalio/workflow';
import { TOOL_BLOCKS, type ToolBlock } from '../../core/blocked.js';
import { notExecuted } from '../../core/calls/batch.js';
import {
  cancelledCall,
  failedCall,
  lostCall,
  lostMessage,
  succeededCall,
  toolErrorCall,
  type CallResult,
} from '../../core/calls/call-result.js';
import type { RunToolInput, RunToolResult } from '../../core/contract.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import { isToolResult } from '../../core/guards/recorded.js';
import { callSummary } from '../../core/text/summaries.js';
import type { ToolCall } from '../../core/transcript/messages.js';
import { findActivity, toolActivity } from '../activities.js';
import { checkedResult, failureMessage, isLost } from '../activity-result.js';
import { DEFERRED, type Deferred, type DeferredWork } from '../blocked-work.js';
import { retryUntilUnblocked, type BlockedAt } from '../blocking.js';
import { resolveUnknownOutcome } from '../decisions.js';
import { inFlight, type RunContext } from '../run-context.js';

/**
 * A `once` tool has a single activity attempt. An execution that fails before the tool is entered is
 * scheduled again, up to this many times in all.
 */
const MAX_STARTS = 8;
const FIRST_PAUSE_MS = 1_000;

interface Execution {
  readonly tool: ToolDefinition;
  readonly input: RunToolInput;
}

/**
 * Executes one call and returns its one result. `deferred` is the blocked call that a segment has
 * deferred, to continue there. Never rejects because of a tool, a worker, or a person.
 */
export async function executeToolCall(
  run: RunContext,
  execution: Execution,
  deferred?: DeferredWork,
): Promise<CallResult | Deferred> {
  const { tool, input } = execution;
  const { call } = input;
  let current = execution;
  let from = deferred;
  for (let starts = 1; ; starts += 1) {
    const end = await attempt(run, current, from);
    const asked = from?.reason === 'outcome_unknown';
    from = undefined;
    switch (end.type) {
      case 'deferred':
        return DEFERRED;
      case 'result':
        return end.result;
      case 'not_started':
        if (starts >= MAX_STARTS) return notExecuted(call, end.message);
        if (!(await pause(run, FIRST_PAUSE_MS * 2 ** (starts - 1)))) {
          return notExecuted(call, 'the run was interrupted before it');
        }
        break;
      case 'unknown': {
        const unknown = { ...execution, message: end.message, asked };
        const decision = await resolveUnknownOutcome(run, unknown);
        if (decision.type === 'deferred') return DEFERRED;
        if (decision.type === 'resolved') return decision.result;
        if (decision.type === 'cancelled') return cancelledCall(call, tool);
        const { again: _, ...retried } = input;
        current = { tool, input: retried };
      }
    }
  }
}

type AttemptEnd =
  | { readonly type: 'deferred' }
  | { readonly type: 'result'; readonly result: CallResult }
  | { readonly type: 'unknown' | 'not_started'; readonly message: string };

async function attempt(
  run: RunContext,
  execution: Execution,
  deferred?: DeferredWork,
): Promise<AttemptEnd> {
  const { tool, input } = execution;
  const { call } = input;
  if (deferred?.reason === 'outcome_unknown') return { type: 'unknown', message: deferred.message };
  const activity = toolActivity(tool, callSummary(call));
  const { resumes } = run;
  try {
    if (deferred !== undefined) return await blockedAttempt(run, execution, deferred);
    const result = await inFlight(run, () => activity(withAccepted(run, input)));
    return toAttemptEnd(checkedResult('runTool', isToolResult, result), { call, tool });
  } catch (error) {
    return await blockedAttempt(run, execution, { error, resumes });
  }
}

/** Never rejects. */
async function blockedAttempt(
  run: RunContext,
  { tool, input }: Execution,
  from: BlockedAt,
): Promise<AttemptEnd> {
  const { call } = input;
  const activity = toolActivity(tool, callSummary(call), true);
  const find = findActivity(callSummary(call));
  const work = {
    name: call.id,
    reasons: TOOL_BLOCKS,
    // A probe may have begun to execute the tool; canceling it would make the outcome unknown.
    cancelable: tool.effect !== 'once',
    find: async (blocked: ToolBlock) =>
      await find({ ...withAccepted(run, input), blocked, find: true }),
    attempt: async (blocked: ToolBlock | undefined) =>
      checkedResult(
        'runTool',
        isToolResult,
        await activity({
          ...withAccepted(run, input),
          ...(blocked !== undefined && { blocked }),
        }),
      ),
  };
  return await retryUntilUnblocked(run, work, from).then(
    (result): AttemptEnd =>
      result === DEFERRED ? { type: 'deferred' } : toAttemptEnd(result, { call, tool }),
    (failure: unknown) => failureEnd(run, { call, tool }, failure),
  );
}

/** Adds the form of a changed tool that a person has accepted, also while the call was waiting. */
function withAccepted({ state }: RunContext, input: RunToolInput): RunToolInput {
  const { accepted = {} } = state;
  const { name } = input.call;
  const form = Object.hasOwn(accepted, name) ? accepted[name] : undefined;
  return form === undefined ? input : { ...input, accepted: form };
}

function failureEnd(
  run: RunContext,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
  error: unknown,
): AttemptEnd {
  if (run.interruption !== null && isCancellation(error)) {
    return toEnd(cancelledCall(call, tool));
  }
  const message = lostMessage(tool.name, failureMessage(error));
  // The worker reports all that it knows as a result, so after a failure the outcome is unknown.
  if (tool.effect === 'once') return { type: 'unknown', message };
  return toEnd(
    isLost(error)
      ? lostCall(call, message)
      : failedCall(call, { type: 'tool_error', message: failureMessage(error) }),
  );
}

function toAttemptEnd(
  result: RunToolResult,
  { call, tool }: { call: ToolCall; tool: ToolDefinition },
): AttemptEnd {
  switch (result.ok) {
    case true:
      return toEnd(succeededCall(call, tool, result));
    case false:
      return toEnd(toolErrorCall(call, result.text));
    case 'unknown':
    case 'not_started':
      return { type: result.ok, message: result.message };
  }
}

function toEnd(result: CallResult): AttemptEnd {
  return { type: 'result', result };
}

/** Returns false if the run was interrupted meanwhile. */
async function pause(run: RunContext, ms: number): Promise<boolean> {
  try {
    await inFlight(run, () => sleep(ms));
    return true;
  } catch {
    return false;
  }
}
