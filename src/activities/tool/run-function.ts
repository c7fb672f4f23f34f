import { Context } from '@temporalio/activity';
import { isObject } from '../../core/json.js';
import { redactMessage } from '../../secrets/redact.js';
import type { RunFunctionInput, RunFunctionResult } from '../../core/contract.js';
import type { ActivityDependencies } from '../dependencies.js';
import { withHeartbeat } from '../heartbeat.js';
import { runBounded } from '../run-bounded.js';
import { reportLoss, trackStore, withStorageMapping } from '../storage-faults.js';
import { prepareCall, type PreparedCall } from './prepare-call.js';
import { executeUndo } from './undo-call.js';
import { recordResult, serializeResult, type SerializedResult } from './tool-result.js';

/**
 * Calls a tool's `verify` for a call whose outcome is unknown, or its `undo` for one that
 * succeeded. Temporal retries errors from `verify`.
 */
export async function runFunction(
  deps: ActivityDependencies,
  input: RunFunctionInput,
): Promise<RunFunctionResult> {
  const context = Context.current();
  return await withHeartbeat(context, async () => {
    const use = input.function === 'undo' ? 'execute' : 'verify';
    const call = await withStorageMapping({}, () => prepareCall(deps, context, input, use));
    if (!call.ok) return { happened: 'unknown', message: 'the arguments cannot be read' };
    if (input.function === 'undo') return await executeUndo(deps, context, { call, input });
    const { pinned } = call;
    const end = await runBounded((signal) => verify(context, { ...call, key: input.key }, signal), {
      name: `verify of tool "${pinned.name}"`,
      timeoutMs: pinned.timeoutMs,
      cancelled: context.cancellationSignal,
    });
    if (end.type === 'thrown') throw end.error;
    if (end.type === 'cancelled') throw context.cancellationSignal.reason;
    if (end.type === 'timeout') return { happened: 'unknown', message: 'verify took too long' };
    const { verification, result } = end.value;
    // Only an explicit `false` allows a call with side effects to be repeated.
    if (!isObject(verification) || typeof verification['happened'] !== 'boolean') {
      return { happened: 'unknown', message: 'verify returned no clear answer' };
    }
    if (!verification['happened']) return { happened: false };
    const store = trackStore(deps.blobs);
    const { output: _, ...recorded } = await recordResult(pinned, result, store.blobs);
    const reports = reportLoss(context, `the result of ${pinned.name} (${input.call.id})`, store);
    const lost = reports.length > 0 && { reports };
    return { happened: true, result: { ok: true, ...recorded, ...lost } };
  });
}

async function verify(
  { log, info }: Context,
  { tool, pinned, key }: Extract<PreparedCall, { ok: true }> & { readonly key: string },
  signal: AbortSignal,
): Promise<{ readonly verification: unknown; readonly result: SerializedResult }> {
  const verification: unknown = await tool.verify?.(key, {
    signal,
    scheduledAt: info.currentAttemptScheduledTimestampMs,
  });
  const given = isObject(verification) ? verification['result'] : undefined;
  const { name, effect } = pinned;
  const warn = (message: string): void => log.warn(redactMessage(message));
  const result = await serializeResult(given ?? 'The call took effect.', {
    name,
    effect,
    signal,
    warn,
  });
  return { verification, result };
}
