import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { artifactText } from '../../core/artifacts/artifact-text.js';
import type { ToolSuccess } from '../../core/calls/call-results.js';
import { errorText, type CallErrorType } from '../../core/calls/calls.js';
import { parseProblem } from '../../core/failure.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { Json } from '../../core/json.js';
import type { ArtifactMade } from '../../core/transcript/messages.js';
import { redactMessage } from '../../secrets/redact.js';
import { CallFault } from '../../tools/arguments/call-fault.js';
import { normalizeError } from '../../tools/result/normalize-error.js';
import { returnedError } from '../../tools/result/returned-error.js';
import { isArtifact } from '../../tools/built-in/artifact.js';
import { isScreenshot } from '../../tools/built-in/screenshot.js';
import { StrayError } from '../../tools/stray-errors.js';
import type { CallArtifacts, Tool, ToolContext } from '../../tools/tool.js';
import type { RunToolInput, RunToolResult } from '../../core/contract.js';
import type { ActivityDependencies } from '../dependencies.js';
import { withHeartbeat } from '../heartbeat.js';
import { contractSchema } from '../model/answer.js';
import { callArtifacts } from './call-artifacts.js';
import { checkedEnding, checkedOutput } from './validate-output.js';
import type { PinnedAgent } from '../definitions.js';
import { keepResult, writeResult } from './tool-result.js';
import { prepareCall, type PreparedCall } from './prepare-call.js';
import { runKey } from '../model/rebuild-prompt.js';
import { runContext } from '../run-context.js';
import { settleTool } from './run-bounded.js';
import { needingStorage } from '../storage.js';
import { beyondStorage } from './tool-storage.js';
import { harmless, logOf, runOf } from './user-function.js';

/** Their names say nothing to a model. */
const PLAIN_ERRORS = ['Error', 'ToolError', 'CallFault', 'StrayError'];

/**
 * Executes one call. What the tool does wrong becomes a result that the model reads; only what
 * another attempt, another worker or a person can mend is thrown.
 */
export async function runTool(
  deps: ActivityDependencies,
  input: RunToolInput,
): Promise<RunToolResult> {
  const context = Context.current();
  return await withHeartbeat(
    context,
    () => undefined,
    async () => {
      const prepared = await beforeExecution(input, async () => {
        const call = await prepareCall(deps, context, input);
        if (!call.ok) return call;
        return {
          ...call,
          userContext: await runContext(input, deps.blobs),
          artifacts: await callArtifacts(input, deps.blobs),
        };
      });
      if (input.find) return { ok: 'not_started', message: 'this worker can execute it' };
      if (!prepared.ok) return prepared.result;
      const result = await settled(deps, context, { ...prepared, input });
      if (result.ok === true || result.ok === false) {
        deps.transcripts.noteResult(runKey(context.info), {
          role: 'tool',
          text: toldText(result, input, prepared.pinned),
          callId: input.call.id,
          ...(result.ok && beside(result, input)),
        });
      }
      return result;
    },
  );
}

/**
 * What fails before a `once` tool is entered has done nothing: the workflow is told so, and may
 * schedule the call again. Other tools are left to Temporal's own retries.
 */
async function beforeExecution(
  { effect }: RunToolInput,
  prepare: () => Promise<Prepared>,
): Promise<Prepared> {
  try {
    return await needingStorage({}, prepare);
  } catch (error) {
    const blocks = error instanceof ApplicationFailure && parseProblem(error.details) !== null;
    if (effect !== 'once' || blocks) throw error;
    return { ok: false, result: { ok: 'not_started', message: normalizeError(error).message } };
  }
}

type Prepared =
  | (Extract<PreparedCall, { ok: true }> & Pick<Execution, 'userContext' | 'artifacts'>)
  | Extract<PreparedCall, { ok: false }>;

/** Once a `once` tool is entered, whatever goes wrong around it leaves its outcome unknown. */
async function settled(
  deps: ActivityDependencies,
  context: Context,
  execution: Execution,
): Promise<RunToolResult> {
  const { pinned } = execution;
  if (pinned.effect !== 'once') return await execute(deps, context, execution);
  if (context.info.attempt > 1 || execution.input.again) {
    // Pausing or resetting an activity by hand starts it again, whatever the retry policy says.
    return { ok: 'unknown', message: `${pinned.name}: an earlier attempt may have taken effect` };
  }
  try {
    return await execute(deps, context, execution);
  } catch (error) {
    if (error instanceof CancelledFailure) throw error;
    return { ok: 'unknown', message: `${pinned.name}: ${normalizeError(error).message}` };
  }
}

interface Execution {
  readonly tool: Tool;
  readonly agent: PinnedAgent;
  readonly pinned: ToolDefinition;
  readonly value: unknown;
  readonly input: RunToolInput;
  readonly userContext: Json;
  readonly artifacts: CallArtifacts;
}

/** What the transcript will say, but for a name that another artifact has: then a worker asks. */
function toldText(
  result: { readonly text: string; readonly artifact?: ArtifactMade },
  { call }: RunToolInput,
  { ends }: ToolDefinition,
): string {
  const { text, artifact: made } = result;
  if (made === undefined || ends) return text;
  return artifactText({ ...made, tool: call.name, call: call.id }, made.name, text);
}

/** As `succeededCall` puts it beside the text. */
function beside({ attachments }: ToolSuccess, { call }: RunToolInput) {
  return {
    ...(attachments && { attachments }),
    ...(call.safety && { acknowledged: true as const }),
  };
}

async function execute(
  deps: ActivityDependencies,
  context: Context,
  execution: Execution,
): Promise<RunToolResult> {
  const { tool, pinned, value } = execution;
  const name = `tool "${pinned.name}"`;
  const bounds = { name, timeoutMs: pinned.timeoutMs, cancelled: context.cancellationSignal };
  const end = await settleTool(async (signal) => {
    const raw = await tool.execute(value, toolContext(context, execution, signal));
    const fault = tool.output === undefined ? returnedError(raw) : null;
    if (fault !== null) return { fault };
    const warn = (message: string): void => context.log.warn(redactMessage(message));
    const checked = await checkedResult(execution, raw, warn);
    // Within the tool's time: a returned stream is read here.
    const about = { name: pinned.name, effect: pinned.effect, signal, warn };
    return { written: await writeResult(checked, about) };
  }, bounds);
  switch (end.type) {
    case 'value': {
      const { fault, written } = end.value;
      if (written === undefined) return failed('tool_error', normalizeError(fault).message);
      return { ok: true, ...(await keepResult(pinned, written, deps.blobs)) };
    }
    case 'thrown':
      return thrown(context, pinned, await beyondStorage(deps, context, end.error, pinned));
    case 'timeout': {
      const message = `${pinned.name} did not end within ${pinned.timeoutMs} ms`;
      return pinned.effect === 'once' ? { ok: 'unknown', message } : failed('timeout', message);
    }
    case 'cancelled':
      return cancelled(context, pinned);
  }
}

/** The value by its schemas, those of the tool and, where it ends the turn, of the agent. */
async function checkedResult(
  { tool, pinned, agent }: Execution,
  raw: unknown,
  warn: (message: string) => void,
): Promise<unknown> {
  if (isScreenshot(raw)) return raw;
  const handed = isArtifact(raw) ? raw : null;
  let value = await checkedOutput(tool, handed === null ? raw : handed.value, warn);
  const contract = pinned.ends ? contractSchema(agent) : null;
  if (contract !== null) value = await checkedEnding({ ...pinned, contract }, value, warn);
  return handed === null ? value : { ...handed, value };
}

/** A plain error is tried again while attempts are left; a `ToolError` is told to the model at once. */
function thrown(context: Context, pinned: ToolDefinition, error: unknown): RunToolResult {
  const { type, message } = normalizeError(error);
  if (error instanceof CallFault && pinned.effect === 'once') {
    return { ok: error.kind === 'unanswered' ? 'unknown' : 'not_started', message };
  }
  if (error instanceof StrayError && pinned.effect === 'once') {
    // The function itself was not done: what it was about to do may happen yet.
    return { ok: 'unknown', message };
  }
  const last = context.info.attempt >= pinned.attempts;
  if (last || pinned.effect === 'once' || type === 'ToolError') {
    return failed('tool_error', PLAIN_ERRORS.includes(type) ? message : `${type}: ${message}`);
  }
  throw ApplicationFailure.create({ type: 'ToolFailed', message: `${pinned.name}: ${message}` });
}

/** Only a cancelled call is cancelled; a worker that shuts down, or a pause, leaves it to another attempt. */
function cancelled(context: Context, pinned: ToolDefinition): RunToolResult {
  const reason: unknown = context.cancellationSignal.reason;
  const why = reason instanceof Error ? reason.message : 'cancelled';
  if (why === 'CANCELLED') throw reason;
  const message = `${pinned.name}: broken off while it ran (${why})`;
  if (pinned.effect === 'once') return { ok: 'unknown', message };
  throw ApplicationFailure.create({ type: 'Retry', message });
}

function failed(type: CallErrorType, message: string): RunToolResult {
  return { ok: false, text: errorText({ type, message }) };
}

function toolContext(
  context: Context,
  { input, userContext, artifacts }: Execution,
  signal: AbortSignal,
): ToolContext {
  const { info } = context;
  return {
    artifacts,
    signal,
    idempotencyKey: input.key,
    heartbeat: (details?: Json) => context.heartbeat(harmless(details)),
    log: logOf(context),
    run: { ...runOf(info), turn: input.turn, step: input.step },
    call: { id: input.call.id, attempt: info.attempt },
    context: userContext,
  };
}
