import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { artifactText } from '../../core/artifacts/artifact-text.js';
import type { RunToolInput, RunToolResult } from '../../core/contract.js';
import { recordedOk, type ToolSuccess } from '../../core/calls/call-result.js';
import { nodeOfCall } from '../../core/graph/node-tool.js';
import { canonicalJson } from '../../core/json.js';
import { parseProblem } from '../../core/failure.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { parsedJson } from '../../tools/arguments/check-arguments.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { assertCurrentAttempt } from '../current-attempt.js';
import type { ActivityDependencies } from '../dependencies.js';
import { startHeartbeat } from '../heartbeat.js';
import { recordParsed } from '../model/record-calls.js';
import { runKey } from '../model/rebuild-prompt.js';
import { createRuleContext, evaluateCall } from '../requests/evaluate-call.js';
import { observeToolCall } from '../observe.js';
import { readRunContext } from '../run-context.js';
import {
  checkWritable,
  reportLoss,
  trackStore,
  unstoredFailure,
  withStorageMapping,
} from '../storage-faults.js';
import { deniedResult, executeCall, type Execution } from './execute-call.js';
import { createGenerator } from './generate.js';
import { prepareCall } from './prepare-call.js';
import { openArtifacts } from './tool-context.js';
import { toRunIds } from './user-function.js';

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
    const result = await execute(deps, context, { input, generator });
    return generator === null || result.ok === 'undecided'
      ? result
      : { ...result, ...generator.report() };
  } catch (error) {
    throw generator?.withPayment(error) ?? error;
  } finally {
    stopHeartbeat();
  }
}

async function execute(
  deps: ActivityDependencies,
  context: Context,
  { input, generator }: Pick<Execution, 'input' | 'generator'>,
): Promise<RunToolResult> {
  // A call that waits for the store is executed again when its result can be stored.
  if (input.blocked === 'storage') await checkWritable(deps.blobs, 'storage');
  const prepared = await prepareOrReport(deps, context, { input, generator });
  const found = { ok: 'not_started', message: 'this worker can execute it' } as const;
  if (input.find && !input.judge) return found;
  if (!prepared.ok) return prepared.result;
  const undecided = await evaluateBeforeExecution(deps, context, prepared.execution);
  if (undecided !== null) return undecided;
  if (input.judge) return deniedResult(deps, context, prepared.execution) ?? found;
  const result = await executeAndStore(deps, context, prepared.execution);
  cacheResult(deps, context, { ...prepared.execution, result });
  return result;
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
  const what = `the result of ${pinned.name} (${input.call.id})`;
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
  const { input } = execution;
  const agent = execution.agent.definition.name;
  return await observeToolCall(context, { agent, input }, async () =>
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
  { agent, pinned, original, value, input, userContext }: Execution,
): Promise<RunToolResult | null> {
  if (input.evaluateRules !== true) return null;
  const ruleContext = createRuleContext({ requests, pinned: agent, input, info, userContext });
  const verdict = await evaluateCall({ tool: pinned, original, parsed: value }, ruleContext);
  if (verdict === null) return null;
  const forms = { written: canonicalJson(original), parsed: parsedJson(value) };
  const parsed = await withStorageMapping({}, () => recordParsed(forms, blobs));
  return { ok: 'undecided', verdict, ...(parsed && { parsed }) };
}

/**
 * Prepares an execution. If that fails before a `once` tool is executed, the result is
 * `not_started`, and the workflow may schedule the call again. Temporal retries the other tools.
 */
async function prepareOrReport(
  deps: ActivityDependencies,
  context: Context,
  given: Pick<Execution, 'input' | 'generator'>,
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
  { input, generator }: Pick<Execution, 'input' | 'generator'>,
): Promise<PreparedExecution> {
  const call = await prepareCall(deps, context, input);
  if (!call.ok) return call;
  const userContext = await readRunContext(input, deps.blobs);
  const { id: run } = toRunIds(context.info);
  const artifacts = await openArtifacts(input, { ...deps, run });
  if (input.effect === 'once' && !input.find) await assertCurrentAttempt(context);
  return { ok: true, execution: { ...call, input, userContext, artifacts, generator } };
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
