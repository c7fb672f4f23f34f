import { condition } from '@temporalio/workflow';
import { resolvedCall, succeededCall, type CallResult } from '../core/calls/call-result.js';
import type { Resolution } from '../core/calls/call-result.js';
import { safetyMessage, safetyPending, safetyResult } from '../core/calls/safety.js';
import type { RunToolInput } from '../core/contract.js';
import type { ToolDefinition } from '../core/definition/definition.js';
import { isFunctionResult } from '../core/guards/recorded.js';
import type { Blocked, Pending } from '../core/status.js';
import { callSummary } from '../core/text/summaries.js';
import type { ToolCall } from '../core/transcript/messages.js';
import { functionActivity } from './activities.js';
import { defer, DEFERRED, untilDeferral, whileDeferrable, type Deferred } from './blocked-work.js';
import { retryInSegment } from './blocking.js';
import { inFlight, type RunContext } from './run-context.js';

// All that waits for a person's decision about a call. The decisions come with the update `resolve`.

/** A call of a `once` tool of which it is unknown whether it took effect. */
interface UnknownOutcome {
  readonly tool: ToolDefinition;
  readonly input: RunToolInput;
  readonly message: string;
  /** The segment before has asked a person already, so `verify` is not called again. */
  readonly asked?: boolean;
}

/** What becomes of the call: it has a result, is executed again, was canceled, or was deferred. */
type OutcomeDecision =
  | { readonly type: 'resolved'; readonly result: CallResult }
  | { readonly type: 'retry' | 'cancelled' | 'deferred' };

/**
 * Decides about a call with an unknown outcome. The tool's `verify` function decides if it has one
 * that can tell; else the run waits for a person. The workflow never invents a result.
 */
export async function resolveUnknownOutcome(
  run: RunContext,
  unknown: UnknownOutcome,
): Promise<OutcomeDecision> {
  try {
    const verifies = unknown.tool.verify && unknown.asked !== true;
    const verified = verifies ? await verify(run, unknown) : null;
    return verified ?? (await askAboutOutcome(run, unknown));
  } catch (error) {
    if (run.interruption !== null) return { type: 'cancelled' };
    throw error;
  }
}

/** Calls the tool's `verify`. Returns null if it cannot tell. */
async function verify(
  run: RunContext,
  { tool, input }: UnknownOutcome,
): Promise<OutcomeDecision | null> {
  const { call } = input;
  const { resumes } = run;
  const activity = functionActivity(tool, `verify ${callSummary(call)}`);
  const attempt = () => activity({ ...input, function: 'verify' });
  const work = { name: call.id, reasons: ['storage'], cancelable: true, attempt } as const;
  const found = await inFlight(run, attempt)
    .catch((error: unknown) => retryInSegment(run, work, { error, resumes }))
    .catch((error: unknown) => {
      if (run.interruption !== null) throw error;
      return null;
    });
  if (!isFunctionResult(found) || found.happened === 'unknown') return null;
  if (!found.happened) return { type: 'retry' };
  const { result } = found;
  if (result.ok !== true) return null;
  return { type: 'resolved', result: succeededCall(call, tool, result) };
}

async function askAboutOutcome(
  run: RunContext,
  { tool, input, message, asked }: UnknownOutcome,
): Promise<OutcomeDecision> {
  const { call, key } = input;
  const id = call.id;
  const fix = `perdure resolve RUN ${id} --as happened|retry|abandon [--result JSON]`;
  const resolution = await askPerson(run, {
    pending: {
      type: 'outcome_unknown',
      call: id,
      tool: tool.name,
      arguments: call.arguments,
      idempotencyKey: key,
      fix,
    },
    blocked: {
      reason: 'outcome_unknown',
      message: asked ? message : `${message}; resolve it: ${fix}`,
    },
  });
  if (resolution === DEFERRED) return { type: 'deferred' };
  const result = resolvedCall(call, tool, resolution);
  return result === null ? { type: 'retry' } : { type: 'resolved', result };
}

/** What becomes of a call with safety checks; an interrupted or deferred one has not been executed. */
type SafetyDecision =
  | { readonly type: 'acknowledged' }
  | { readonly type: 'rejected'; readonly result: CallResult }
  | { readonly type: 'interrupted' | 'deferred' };

/** Waits until a person acknowledges a call's safety checks. Perdure never acknowledges them itself. */
export async function acknowledgeSafety(run: RunContext, call: ToolCall): Promise<SafetyDecision> {
  try {
    const resolution = await askPerson(run, {
      pending: safetyPending(call, 'RUN'),
      blocked: { reason: 'safety_check', message: safetyMessage(call) },
    });
    if (resolution === DEFERRED) return { type: 'deferred' };
    const result = safetyResult(call, resolution);
    if (result !== null) return { type: 'rejected', result };
    if (run.state.paused) await inFlight(run, () => condition(() => !run.state.paused));
    return { type: 'acknowledged' };
  } catch (error) {
    if (run.interruption !== null) return { type: 'interrupted' };
    throw error;
  }
}

/**
 * Blocks the run, visibly, until a person decides about a call. Returns `DEFERRED` if the segment is
 * full before that; the next segment asks again. Rejects when the run is interrupted.
 */
async function askPerson(
  run: RunContext,
  { pending, blocked }: { readonly pending: Pending; readonly blocked: Blocked },
): Promise<Resolution | Deferred> {
  const { call } = pending;
  run.pending.set(call, pending);
  run.blocked.set(call, blocked);
  run.changed();
  const isDecided = (): boolean => run.resolutions.has(call);
  let deferred = false;
  try {
    await whileDeferrable(run, call, () => inFlight(run, () => untilDeferral(run, isDecided)));
    deferred = !isDecided();
  } finally {
    if (!deferred) {
      run.pending.delete(call);
      run.blocked.delete(call);
      run.changed();
    }
  }
  const resolution = run.resolutions.get(call);
  run.resolutions.delete(call);
  if (resolution !== undefined) return resolution;
  return defer(run, { name: call, probeMs: 0, resumes: run.resumes });
}
