import { formatDuration } from '../../core/text/duration.js';
import type { Context } from '@temporalio/activity';
import type { RunFunctionInput, RunFunctionResult } from '../../core/contract.js';
import { sha256Hex } from '../../core/digest.js';
import { canonicalJson, parseJson } from '../../core/json.js';
import type { Verdict } from '../../core/requests/rules.js';
import { readFor } from '../../storage/worker-store.js';
import { parsedJson } from '../../tools/arguments/check-arguments.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import type { Tool, UndoContext } from '../../tools/tool.js';
import { assertCurrentAttempt } from '../current-attempt.js';
import type { ActivityDependencies } from '../dependencies.js';
import { interruptionCause, retryFailure, THIS_WORKER } from '../failures.js';
import { recordParsed } from '../model/record-calls.js';
import {
  createRuleContext,
  currentDenial,
  evaluateCall,
  type RuleContext,
} from '../requests/evaluate-call.js';
import { runBounded } from '../run-bounded.js';
import { readRunContext } from '../run-context.js';
import { withStorageMapping } from '../storage-faults.js';
import type { PreparedCall } from './prepare-call.js';

type Prepared = Extract<PreparedCall, { ok: true }>;

/**
 * Calls a tool's `undo` for a successful call, if the rules and the tool's `approval` allow it or a
 * person approved it. Throws while further attempts remain; the `undo` of a `once` tool is called
 * at most once.
 */
export async function executeUndo(
  deps: ActivityDependencies,
  context: Context,
  { call, input }: { readonly call: Prepared; readonly input: RunFunctionInput },
): Promise<RunFunctionResult> {
  const { agent, tool, pinned, value } = call;
  const { info } = context;
  const { userContext, text } = await withStorageMapping({}, async () => ({
    userContext: await readRunContext(input, deps.blobs),
    text: await readResult(deps, input),
  }));
  const ruleContext = createRuleContext({ ...deps, pinned: agent, input, info, userContext });
  const verdict = await evaluateUndo(deps, ruleContext, {
    call,
    isApproved: input.approved === true,
  });
  if (verdict !== null) {
    // For most calls, the model's reply has recorded it.
    const forms = { written: canonicalJson(call.original), parsed: parsedJson(value) };
    const isKnown = input.call.parsed !== undefined;
    const parsed = isKnown
      ? undefined
      : await withStorageMapping({}, () => recordParsed(forms, deps.blobs));
    return { happened: 'undecided', verdict, ...(parsed && { parsed }) };
  }
  if (tool.undo === undefined) {
    return unknown(`tool "${pinned.name}" has no \`undo\` on ${THIS_WORKER}; nothing was undone`);
  }
  if (pinned.effect === 'once') {
    // An operator can pause or reset an activity, which starts it again despite the retry policy.
    if (info.attempt > 1) return unknown('an earlier attempt may have undone it');
    await assertCurrentAttempt(context);
  }
  const { run } = ruleContext.context;
  const idempotencyKey = sha256Hex(`undo ${input.key}`);
  return await runUndo(context, call, (signal) =>
    tool.undo?.(value, recordedValue(tool, text), {
      idempotencyKey,
      signal,
      run,
      context: userContext,
    }),
  );
}

/**
 * Applies the rules to an undo as to a call. If a person approved it, only the current `deny`
 * rules still apply.
 */
async function evaluateUndo(
  { requests }: Pick<ActivityDependencies, 'requests'>,
  ruleContext: RuleContext,
  { call, isApproved }: { readonly call: Prepared; readonly isApproved: boolean },
): Promise<Verdict | null> {
  const evaluated = { tool: call.pinned, original: call.original, parsed: call.value };
  if (!isApproved) return await evaluateCall(evaluated, ruleContext);
  return currentDenial(evaluated, { requests, pinned: ruleContext.pinned });
}

async function readResult(
  { blobs }: Pick<ActivityDependencies, 'blobs'>,
  { result, call }: RunFunctionInput,
): Promise<string> {
  if (result?.blob === undefined) return result?.text ?? '';
  return await readFor(`the result of ${call.name} (${call.id})`, result.blob, blobs);
}

/**
 * Returns a recorded result as `execute` returned it, as far as JSON preserves it: the parsed value
 * if the text is JSON, else the text. Text that is a JSON string, or whose schema is `z.string()`,
 * is returned unparsed.
 */
export function recordedValue({ output }: Pick<Tool, 'output'>, text: string): unknown {
  if (output?.type === 'string') return text;
  const value = parseJson(text);
  return value === undefined || typeof value === 'string' ? text : value;
}

async function runUndo(
  context: Context,
  { pinned }: Prepared,
  undo: (signal: UndoContext['signal']) => unknown,
): Promise<RunFunctionResult> {
  const { name, timeoutMs, effect, attempts } = pinned;
  const end = await runBounded(async (signal) => await undo(signal), {
    name: `undo of tool "${name}"`,
    timeoutMs,
    cancelled: context.cancellationSignal,
  });
  const isLast = effect === 'once' || context.info.attempt >= attempts;
  switch (end.type) {
    case 'value':
      return { happened: true, result: { ok: true, text: '' } };
    case 'timeout':
      return unknown(
        `undo of ${name} timed out after ${formatDuration(timeoutMs, { as: 'exact' })}`,
      );
    case 'thrown': {
      const { type, message } = normalizeError(end.error);
      if (isLast || type === 'ToolError') return unknown(`undo of ${name}: ${message}`);
      throw retryFailure(`undo of ${name}: ${message}`);
    }
    case 'cancelled': {
      const cause = interruptionCause(context);
      if (cause === 'CANCELLED') throw context.cancellationSignal.reason;
      const message = `undo of ${name}: interrupted during execution (${cause})`;
      if (isLast) return unknown(message);
      throw retryFailure(message);
    }
  }
}

function unknown(message: string): RunFunctionResult {
  return { happened: 'unknown', message };
}
