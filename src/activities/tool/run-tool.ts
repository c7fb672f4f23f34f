import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { parseProblem } from '../../core/interpret/block.js';
import type {
  RunFunctionInput,
  RunFunctionResult,
  RunToolInput,
  RunToolResult,
} from '../../core/run/contract.js';
import { artifactText } from '../../core/state/summaries.js';
import { nodeOfCall, toolText } from '../../core/state/turn-definition.js';
import { canonicalJson, isObject, parseJson, sha256Hex } from '../../core/text/json.js';
import { formatDuration } from '../../core/text/text.js';
import { type ToolSuccess, recordedOk } from '../../core/transcript/call-result.js';
import { redactMessage } from '../../secrets/redact.js';
import { readFor } from '../../storage/blob-store.js';
import { parsedJson } from '../../tools/arguments/check-arguments.js';
import { normalizeError } from '../../tools/result/plain.js';
import type { Tool, UndoContext } from '../../tools/tool.js';
import { type ActivityDependencies, readRunContext } from '../activity-context.js';
import {
  THIS_WORKER,
  assertCurrentAttempt,
  interruptionCause,
  retryFailure,
  runBounded,
  startHeartbeat,
  toRunIds,
  withHeartbeat,
} from '../attempt.js';
import { recordParsed } from '../model/reply-calls.js';
import { observeToolCall } from '../observe.js';
import { runKey } from '../prompt.js';
import { createRuleContext, evaluateCall, evaluateUndo } from '../requests/evaluate-call.js';
import {
  checkWritable,
  reportLoss,
  trackStore,
  unstoredFailure,
  withStorageMapping,
} from '../storage-faults.js';
import { type Execution, deniedResult, executeCall } from './execute-call.js';
import { createGenerator } from './generate.js';
import { describeUnchanged } from './mcp-tool.js';
import { type PreparedCall, prepareCall } from './prepare-call.js';
import {
  type SerializedResult,
  openArtifacts,
  recordResult,
  serializeResult,
} from './tool-result.js';

type Given = Pick<Execution, 'input' | 'generator' | 'withinMs'>;

type PreparedExecution =
  | { readonly ok: true; readonly execution: Execution }
  | { readonly ok: false; readonly result: RunToolResult };

/**
 * Executes one tool call. A fault of the tool becomes a result that the model reads. Throws only
 * problems that another attempt, another worker, or a person can fix.
 */
export async function runTool(
  deps: ActivityDependencies,
  input: RunToolInput,
): Promise<RunToolResult> {
  const context = Context.current();
  const generator = nodeOfCall(input.call) === null ? null : createGenerator(deps, context, input);
  const stopHeartbeat = startHeartbeat(context, () => generator?.details());
  try {
    const result = await executeTool(deps, context, { input, generator });
    return generator?.withReport(result) ?? result;
  } catch (error) {
    throw generator?.withPayment(error) ?? error;
  } finally {
    generator?.close();
    stopHeartbeat();
  }
}

/** Executes one tool call, in an activity of its own or with other calls of its reply. */
export async function executeTool(
  deps: ActivityDependencies,
  context: Context,
  given: Given,
): Promise<RunToolResult> {
  const { input } = given;
  // A call that waits for the store is executed again when its result can be stored.
  if (input.blocked === 'storage') await checkWritable(deps.blobs, 'storage');
  const prepared = await prepareOrReport(deps, context, given);
  const found = { ok: 'not_started', message: 'this worker can execute it' } as const;
  if (input.find && !input.judge) return found;
  if (!prepared.ok) return prepared.result;
  const undecided = await evaluateBeforeExecution(deps, context, prepared.execution);
  if (undecided !== null) return undecided;
  if (input.judge) return deniedResult(deps, context, prepared.execution) ?? found;
  const { pinned, value } = prepared.execution;
  // The text of a call whose arguments had references is not known yet.
  const isNamed = input.call.summary !== undefined || pinned.undoMs === undefined;
  const summary = isNamed ? undefined : await describeUnchanged(prepared.execution, value);
  const result = await executeAndStore(deps, context, prepared.execution);
  cacheResult(deps, context, { ...prepared.execution, result });
  return result.ok === true && summary !== undefined ? { ...result, summary } : result;
}

/**
 * Executes the call. If its result cannot be stored whole, a `read` waits for the store and is
 * repeated. The side effect of any other call has happened, so the loss is reported.
 */
async function executeAndStore(
  deps: ActivityDependencies,
  context: Context,
  execution: Execution,
): Promise<RunToolResult> {
  const { input, pinned } = execution;
  const store = trackStore(deps.blobs);
  const result = await executeObserved({ ...deps, blobs: store.blobs }, context, execution);
  if (result.ok !== true && result.ok !== false) return result;
  const what = `the result of ${toolText(pinned)} (${input.call.id})`;
  if (pinned.effect === 'read') {
    const failure = unstoredFailure(what, store);
    if (failure !== null) throw failure;
  }
  const reports = reportLoss(context, what, store);
  return reports.length === 0 ? result : { ...result, reports };
}

/** Executes the call inside a span, and counts it. */
async function executeObserved(
  deps: ActivityDependencies,
  context: Context,
  execution: Execution,
): Promise<RunToolResult> {
  const { input, agent } = execution;
  return await observeToolCall(context, { agent: agent.definition.name, input }, async () =>
    executeCall(deps, context, execution),
  );
}

/**
 * Returns the verdict that prevents a call, if no model reply has recorded one yet; null if the
 * call may be made.
 */
async function evaluateBeforeExecution(
  { requests, blobs }: ActivityDependencies,
  { info }: Context,
  { agent, tool, pinned, original, value, input, userContext }: Execution,
): Promise<RunToolResult | null> {
  if (input.evaluateRules !== true) return null;
  const ruleContext = createRuleContext({ requests, pinned: agent, input, info, userContext });
  const verdict = await evaluateCall({ tool: pinned, original, parsed: value }, ruleContext);
  if (verdict === null) return null;
  const forms = { written: canonicalJson(original), parsed: parsedJson(value) };
  const parsed = await withStorageMapping({}, () => recordParsed(forms, blobs));
  const summary = await describeUnchanged({ pinned, tool }, value);
  return {
    ok: 'undecided',
    verdict,
    ...(parsed && { parsed }),
    ...(summary !== undefined && { summary }),
  };
}

/**
 * Prepares an execution. If that fails before a `once` tool is executed, the result is
 * `not_started`, and the workflow may schedule the call again. Temporal retries the other tools.
 */
async function prepareOrReport(
  deps: ActivityDependencies,
  context: Context,
  given: Given,
): Promise<PreparedExecution> {
  try {
    return await withStorageMapping({}, () => prepareExecution(deps, context, given));
  } catch (error) {
    const isProblem = error instanceof ApplicationFailure && parseProblem(error.details) !== null;
    if (given.input.effect !== 'once' || isProblem) throw error;
    return { ok: false, result: { ok: 'not_started', message: normalizeError(error).message } };
  }
}

async function prepareExecution(
  deps: ActivityDependencies,
  context: Context,
  given: Given,
): Promise<PreparedExecution> {
  const { input } = given;
  const call = await prepareCall(deps, context, input);
  if (!call.ok) return call;
  const userContext = await readRunContext(input, deps.blobs);
  const artifacts = await openArtifacts(input, { ...deps, run: toRunIds(context.info).id });
  if (input.effect === 'once' && !input.find) await assertCurrentAttempt(context);
  return { ok: true, execution: { ...call, ...given, userContext, artifacts } };
}

/** Adds the tool message that the workflow will append to this worker's transcript cache. */
function cacheResult(
  { transcripts }: ActivityDependencies,
  { info }: Context,
  { input, pinned, result }: Pick<Execution, 'input' | 'pinned'> & { result: RunToolResult },
): void {
  if (result.ok !== true && result.ok !== false) return;
  const text = result.ok ? transcriptText(result, input, pinned) : result.text;
  transcripts.noteResult(runKey(info), {
    role: 'tool',
    text,
    callId: input.call.id,
    // These are the fields that `closeBatch` adds to the message.
    ...recordedOk({ ok: result.ok, text }),
    ...(result.ok && result.attachments && { attachments: result.attachments }),
    ...(result.ok && input.call.safety && { acknowledged: true as const }),
  });
}

/**
 * Returns the text of the tool message. The workflow may rename an artifact whose name is taken;
 * the digest then differs, and the cache queries the workflow.
 */
function transcriptText(
  { text, artifact }: ToolSuccess,
  { call }: RunToolInput,
  { ends }: ToolDefinition,
): string {
  if (artifact === undefined || ends) return text;
  return artifactText({ ...artifact, tool: call.name, call: call.id }, artifact.name, text);
}

type Prepared = Extract<PreparedCall, { ok: true }>;

/**
 * Calls a tool's `undo` for a successful call, if the rules and the tool's `approval` allow it or a
 * person approved it. Throws while further attempts remain; the `undo` of a `once` tool is called
 * at most once.
 */
async function executeUndo(
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
  const evaluated = { tool: pinned, original: call.original, parsed: value };
  const verdict = await evaluateUndo(evaluated, ruleContext, {
    requests: deps.requests,
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

async function readResult(
  { blobs }: Pick<ActivityDependencies, 'blobs'>,
  { result, call }: RunFunctionInput,
): Promise<string> {
  if (result?.blob === undefined) return result?.text ?? '';
  return await readFor(`the result of ${toolText(call)} (${call.id})`, result.blob, blobs);
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
    const reports = reportLoss(
      context,
      `the result of ${toolText(pinned)} (${input.call.id})`,
      store,
    );
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
  const value = given ?? 'The call took effect.';
  const result = await serializeResult(value, { name, effect, signal, warn });
  return { verification, result };
}
