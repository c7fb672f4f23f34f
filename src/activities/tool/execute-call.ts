import { formatDuration } from '../../core/text/text.js';
import type { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { errorText, type CallErrorType } from '../../core/transcript/call-result.js';
import type { RunToolInput, RunToolResult } from '../../core/run/contract.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { nodeOfCall, toolText } from '../../core/state/turn-definition.js';
import { type Json, type JsonObject, canonicalJson, isObject } from '../../core/text/json.js';
import type { Message } from '../../core/transcript/messages.js';
import { InputRequired } from '../../mcp/input-required.js';
import { redactMessage } from '../../secrets/redact.js';
import { BlobError } from '../../storage/blob-store.js';
import { CallFault } from '../../tools/arguments/check-arguments.js';
import { normalizeError, failureText, returnedError, toPlain } from '../../tools/result/plain.js';
import { StrayError, ToolError } from '../../tools/errors.js';
import {
  type CallArtifacts,
  type NodeContext,
  RecordedResult,
  type Tool,
} from '../../tools/tool.js';
import type { PinnedAgent, ActivityDependencies } from '../activity-context.js';
import { interruptionCause, retryFailure, runBounded } from '../attempt.js';
import { contractSchema } from '../model/answer-formats.js';
import { queryWorkflow } from '../prompt.js';
import { currentDenial } from '../requests/evaluate-call.js';
import { findStorageFault, storageFailure } from '../storage-faults.js';
import type { Generator } from './generate.js';
import {
  attemptOf,
  createToolContext,
  nodeResultProblem,
  recordResult,
  plainFault,
  serializeResult,
  validateResult,
  type SerializedResult,
} from './tool-result.js';

/** The type of the failure of a tool that threw and is executed again. */
export const TOOL_FAILED = 'ToolFailed';
/** Error types whose names do not help a model. */
const PLAIN_ERRORS = ['Error', 'ToolError', 'CallFault', 'StrayError'];

/** A prepared call with everything needed to execute it. */
export interface Execution {
  readonly tool: Tool;
  readonly agent: PinnedAgent;
  readonly pinned: ToolDefinition;
  /** The original arguments. */
  readonly original: JsonObject;
  /** The checked arguments. */
  readonly value: unknown;
  readonly input: RunToolInput;
  readonly userContext: Json;
  readonly artifacts: CallArtifacts;
  /** The model calls of a node's function; null for a tool. */
  readonly generator: Generator | null;
  /**
   * Milliseconds left for an inline call; what takes longer is thrown as a `SlowReadError`. Absent for
   * an activity.
   */
  readonly withinMs?: number;
}

/** An inline call was cut off because its time was over; an activity executes it next. */
export class SlowReadError extends Error {}

/**
 * Executes a prepared call, unless a rule of this worker or its agent denies it now. A `once` tool is executed
 * at most once: if an earlier attempt may have executed it, or if anything else fails during its
 * execution, the result is `unknown`.
 */
export async function executeCall(
  deps: ActivityDependencies,
  context: Context,
  execution: Execution,
): Promise<RunToolResult> {
  const { pinned } = execution;
  const denied = deniedResult(deps, context, execution);
  if (pinned.effect !== 'once') return denied ?? (await execute(deps, context, execution));
  // An operator can pause or reset an activity, which starts it again despite the retry policy.
  if (context.info.attempt > 1 || execution.input.again) {
    return {
      ok: 'unknown',
      message: `${toolText(pinned)}: an earlier attempt may have taken effect`,
    };
  }
  if (denied !== null) return denied;
  try {
    return await execute(deps, context, execution);
  } catch (error) {
    if (error instanceof CancelledFailure) throw error;
    return { ok: 'unknown', message: `${toolText(pinned)}: ${normalizeError(error).message}` };
  }
}

/** Returns the result of a call that the current rules of the worker or its agent deny, else null. */
export function deniedResult(
  { requests }: ActivityDependencies,
  { info }: Context,
  { agent, pinned, original, value, input }: Execution,
): RunToolResult | null {
  const call = { tool: pinned, original, parsed: value };
  const verdict = currentDenial(call, { requests, pinned: agent });
  if (verdict === null) return null;
  const isUnsure = info.attempt > 1 && pinned.effect !== 'read' && !input.judge;
  const doubt = isUnsure ? '; an earlier attempt may have taken effect' : '';
  return failed(
    'denied',
    `${toolText(pinned)} was not executed: ${redactMessage(verdict.why)}${doubt}`,
  );
}

async function execute(
  deps: ActivityDependencies,
  context: Context,
  execution: Execution,
): Promise<RunToolResult> {
  const { pinned } = execution;
  const { name, effect, timeoutMs } = pinned;
  const { withinMs = Infinity } = execution;
  const end = await runBounded((signal) => callFunction(context, execution, signal), {
    name: `tool "${name}"`,
    timeoutMs: Math.min(timeoutMs, withinMs),
    cancelled: context.cancellationSignal,
  });
  switch (end.type) {
    case 'value': {
      const { value } = end;
      if ('recorded' in value) return value.recorded;
      if ('error' in value) return failed('tool_error', normalizeError(value.error).message);
      if ('unreadable' in value) return unknownResult(pinned, value.unreadable);
      const tooLarge = nodeResultProblem(pinned, value);
      if (tooLarge !== null) {
        return effect === 'read' ? failed('tool_error', tooLarge) : unknownResult(pinned, tooLarge);
      }
      return { ok: true, ...(await recordResult(pinned, value, deps.blobs)) };
    }
    case 'thrown': {
      if (end.error instanceof InputRequired) return { ok: 'input_required', ...end.error.input };
      const ended = (await execution.generator?.onThrown(end.error)) ?? null;
      if (ended !== null) return ended;
      const error = await toToolFault(deps, context, { pinned, error: end.error });
      return onThrown(context, { input: execution.input, pinned, error });
    }
    case 'timeout': {
      if (withinMs < timeoutMs) throw new SlowReadError();
      const message = `${name} timed out after ${formatDuration(timeoutMs, { as: 'exact' })}`;
      if (effect === 'read') return failed('timeout', message);
      if (effect === 'keyed' && context.info.attempt < pinned.attempts) throw retryFailure(message);
      return { ok: 'unknown', message };
    }
    case 'cancelled':
      return onInterrupted(context, pinned);
  }
}

/** Returns the message of a failed result; null for any other result. */
function failureOf(tool: Tool, returned: unknown): string | null {
  if (tool.failed !== undefined) return tool.failed(returned) ? failureText(returned) : null;
  return tool.output === undefined ? returnedError(returned) : null;
}

/** Calls the tool's function within its time limit, which includes reading a returned stream. */
async function callFunction(
  context: Context,
  execution: Execution,
  signal: AbortSignal,
): Promise<
  | SerializedResult
  | { readonly error: unknown }
  | { readonly unreadable: string }
  | { readonly recorded: RunToolResult }
> {
  const { tool, pinned, value } = execution;
  const { generator } = execution;
  const toolContext = createToolContext(context, execution, signal);
  const returned =
    generator === null
      ? await tool.executeParsed(value, toolContext)
      : await generator.during(signal, (generate) => {
          const nodeContext: NodeContext = { ...toolContext, generate };
          return tool.executeParsed(value, nodeContext);
        });
  if (returned instanceof RecordedResult) {
    return { recorded: await recordedResult(context, execution, returned) };
  }
  try {
    return await readReturned(context, execution, { returned, signal });
  } catch (error) {
    // The function has returned, so a call with a side effect must not look like a failed one.
    if (pinned.effect === 'read' || signal.aborted) throw error;
    const message = `its result cannot be read: ${normalizeError(error).message}`;
    context.log.warn(redactMessage(`${toolText(pinned)} was executed, but ${message}`));
    if (nodeOfCall(pinned) !== null) return { unreadable: `it was executed, but ${message}` };
    const lost = redactMessage(message);
    return { content: `[the call was executed; ${lost}]`, isText: true, lost };
  }
}

/**
 * Returns a recorded result as it is. Only the agent's contract is applied again to a result that ends
 * the turn, since it may have changed.
 */
async function recordedResult(
  context: Context,
  { pinned, agent }: Execution,
  { result }: RecordedResult,
): Promise<RunToolResult> {
  const contract = pinned.ends ? contractSchema(agent) : null;
  if (contract === null || result.ok !== true || result.blob !== undefined) return result;
  const { name, effect } = pinned;
  const { output: before = result.text } = result;
  const warn = (message: string): void => context.log.warn(redactMessage(message));
  const output = toPlain(await validateResult({ name, effect }, before, { contract, warn }));
  if (canonicalJson(output) === canonicalJson(before)) return result;
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return { ...result, text, output };
}

/** Returns the value of a tool's function as text for the model, or the error that it reports. */
async function readReturned(
  context: Context,
  { tool, pinned, agent }: Execution,
  { returned, signal }: { readonly returned: unknown; readonly signal: AbortSignal },
): Promise<SerializedResult | { readonly error: unknown }> {
  const error = failureOf(tool, returned);
  if (error !== null) return { error };
  const warn = (message: string): void => context.log.warn(redactMessage(message));
  const contract = pinned.ends ? contractSchema(agent) : null;
  const result = await validateResult(tool, returned, { contract, warn });
  const note = plainFault(pinned, result, warn);
  const { name, effect, ends, value } = pinned;
  const serialized = await serializeResult(result, { name, effect, signal, warn });
  // A value is recorded as it is; the log has the warning.
  const isValue = ends === true || value === true || serialized.artifact !== undefined;
  if (note === null || isValue || nodeOfCall(pinned) !== null) return serialized;
  return { content: `${redactMessage(note)}\n${serialized.content}`, isText: true };
}

/** The result of a call that has or may have taken effect, for a person to decide. */
function unknownResult(tool: ToolDefinition, message: string): RunToolResult {
  return { ok: 'unknown', message: `${toolText(tool)}: ${message}` };
}

/**
 * Returns the result of a tool that threw. A plain error is rethrown while attempts remain, and
 * Temporal retries it; a `ToolError` goes to the model at once. A `once` tool is never retried. If
 * another system never answered an attempt of a `keyed` call, its outcome is unknown after the last
 * one: the model would repeat it under another key.
 */
function onThrown(
  context: Context,
  { input, pinned, error }: Pick<Execution, 'input' | 'pinned'> & { readonly error: unknown },
): RunToolResult {
  const { type, message: text } = normalizeError(error);
  const message = withoutNode(pinned, text);
  const isOnce = pinned.effect === 'once';
  if (error instanceof CallFault && isOnce) {
    return { ok: error.kind === 'unanswered' ? 'unknown' : 'not_started', message };
  }
  // The function had not ended when its stray error occurred, so its side effect may still follow.
  if (error instanceof StrayError && isOnce) return { ok: 'unknown', message };
  const isLast = attemptOf(context, input) >= pinned.attempts;
  if (error instanceof CallFault && pinned.effect === 'keyed') {
    const unsure = error.kind === 'unanswered' ? message : unsureMessage(context, input, message);
    if (isLast && unsure !== null) return { ok: 'unknown', message: unsure };
  }
  if (isLast || isOnce || type === 'ToolError') {
    return failed('tool_error', PLAIN_ERRORS.includes(type) ? message : `${type}: ${message}`);
  }
  throw ApplicationFailure.create({
    type: TOOL_FAILED,
    message: `${toolText(pinned)}: ${message}`,
  });
}

/**
 * Returns what to tell a person about a `keyed` call whose last attempt was not sent, because an earlier
 * one may have acted; null if none has. The details of the heartbeat tell the next attempt so: they have the
 * number of attempts that were not sent, from the first one on, and one that was killed writes none.
 */
export function unsureMessage(
  context: Context,
  input: RunToolInput,
  message: string,
): string | null {
  const attempt = attemptOf(context, input);
  const details: unknown = context.info.heartbeatDetails;
  const unsent = isObject(details) ? details['unsent'] : undefined;
  const before = typeof unsent === 'number' ? unsent : 0;
  if (before < attempt - 1) return `${message}; an earlier attempt may have taken effect`;
  context.heartbeat({ unsent: attempt });
  return null;
}

/** Returns the message of a node's function without the names of its graph and node, which the run adds. */
function withoutNode(pinned: ToolDefinition, message: string): string {
  const node = nodeOfCall(pinned);
  const [names] = /^graph "[^"]*": node "[^"]*":? /.exec(message) ?? [];
  if (node === null || names === undefined) return message;
  return names.includes(`node "${node}"`) ? message.slice(names.length) : message;
}

/**
 * Throws the cancellation of a canceled call. Any other interruption is left to another attempt.
 */
function onInterrupted(context: Context, pinned: ToolDefinition): RunToolResult {
  const cause = interruptionCause(context);
  if (cause === 'CANCELLED') throw context.cancellationSignal.reason;
  const message = `${toolText(pinned)}: interrupted during execution (${cause})`;
  if (pinned.effect === 'once') return { ok: 'unknown', message };
  throw retryFailure(message);
}

function failed(type: CallErrorType, message: string): RunToolResult {
  return { ok: false, text: errorText({ type, message }) };
}

/**
 * Returns the error that is attributed to the tool. Throws the failure that blocks the run if the
 * worker's store caused the error, unless a `once` tool may have acted before. A reference unknown
 * to this run is a mistake of the model, so it becomes a `ToolError`.
 */
async function toToolFault(
  deps: ActivityDependencies,
  context: Context,
  { pinned, error }: { readonly pinned: ToolDefinition; readonly error: unknown },
): Promise<unknown> {
  const fault = findStorageFault(error);
  if (fault === null || pinned.effect === 'once') return error;
  const isMissing = error instanceof BlobError && error.kind === 'missing';
  if (isMissing && fault.blob !== undefined && !(await isOwnBlob(deps, context, fault.blob))) {
    return new ToolError(
      `ref: this conversation has no text ${fault.blob}; copy the ref from the note where a text was truncated`,
    );
  }
  throw storageFailure(fault);
}

/**
 * Returns whether the run has stored this blob. Only its own records are evidence, because a text
 * may contain any hash.
 */
async function isOwnBlob(
  deps: ActivityDependencies,
  context: Context,
  sha256: string,
): Promise<boolean> {
  try {
    const messages = await queryWorkflow(context, deps).prompt(0, Number.MAX_SAFE_INTEGER);
    return messages.some((message) => blobsOf(message).includes(sha256));
  } catch (error) {
    // If an earlier part of the conversation is also missing, the store is at fault.
    if (findStorageFault(error) !== null) return true;
    throw error;
  }
}

function blobsOf(message: Message): readonly string[] {
  const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
  return [message, ...calls].flatMap(({ blob }) => (blob === undefined ? [] : [blob.sha256]));
}
