import { Context, type Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { errorText, type CallErrorType } from '../core/calls.js';
import type { ToolDefinition } from '../core/definition.js';
import { parseJson, type Json, type JsonObject } from '../core/json.js';
import { fitText } from '../tools/cut.js';
import { normaliseError } from '../tools/normalise-error.js';
import { normaliseResult } from '../tools/normalise.js';
import type { Tool, ToolContext } from '../tools/tool.js';
import { runKey } from './call-model.js';
import type { RunToolInput, RunToolResult } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { withHeartbeat } from './heartbeat.js';
import { checkedOutput } from './checked-output.js';
import { prepareCall } from './prepare-call.js';
import { settleTool } from './settle-tool.js';

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
      const prepared = await prepareCall(deps, context, input);
      if (!prepared.ok) return prepared.result;
      const { tool, pinned, value } = prepared;
      const userContext = await contextOf(deps, input);
      const result = await execute(deps, context, { tool, pinned, value, input, userContext });
      if (result.ok !== 'unknown') {
        const { text } = result;
        deps.transcripts.noteResult(runKey(context.info), {
          role: 'tool',
          text,
          callId: input.call.id,
        });
      }
      return result;
    },
  );
}

interface Execution {
  readonly tool: Tool;
  readonly pinned: ToolDefinition;
  readonly value: unknown;
  readonly input: RunToolInput;
  readonly userContext: Json;
}

async function execute(
  deps: ActivityDependencies,
  context: Context,
  execution: Execution,
): Promise<RunToolResult> {
  const { tool, pinned, value } = execution;
  const bounds = { timeoutMs: pinned.timeoutMs, cancelled: context.cancellationSignal };
  const settled = await settleTool(async (signal) => {
    const raw = await tool.execute(value, toolContext(context, execution, signal));
    const returned = await checkedOutput(tool, raw, (message) => context.log.warn(message));
    // Within the tool's time: a returned stream is read here.
    return { returned, whole: await normaliseResult(returned, { signal }) };
  }, bounds);
  switch (settled.type) {
    case 'value':
      return await succeeded(deps, pinned, settled.value);
    case 'thrown':
      return thrown(context, pinned, settled.error);
    case 'timeout': {
      const message = `${pinned.name} did not end within ${pinned.timeoutMs} ms`;
      return pinned.effect === 'once' ? { ok: 'unknown', message } : failed('timeout', message);
    }
    case 'cancelled':
      return cancelled(context, pinned);
  }
}

/** Stored before it is reported: a result that cannot be kept is not there. */
async function succeeded(
  deps: ActivityDependencies,
  pinned: ToolDefinition,
  { returned, whole }: { returned: unknown; whole: string },
): Promise<RunToolResult> {
  const { text, blob } = await fitText(whole, deps.blobs);
  // Only where it becomes the run's output: everything else is recorded once, as text.
  const typed = pinned.ends && typeof returned !== 'string' && !blob;
  const output = typed ? parseJson(whole) : undefined;
  return {
    ok: true,
    text,
    ...(blob && { blob }),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.parse gives JSON
    ...(output !== undefined && { output: output as Json }),
  };
}

/** A plain error is tried again while attempts are left; a `ToolError` is told to the model at once. */
function thrown(context: Context, pinned: ToolDefinition, error: unknown): RunToolResult {
  const { type, message } = normaliseError(error);
  const last = context.info.attempt >= pinned.attempts;
  if (last || pinned.effect === 'once' || type === 'ToolError') {
    return failed(
      'tool_error',
      type === 'Error' || type === 'ToolError' ? message : `${type}: ${message}`,
    );
  }
  throw ApplicationFailure.create({ type: 'ToolFailed', message: `${pinned.name}: ${message}` });
}

/** A worker that shuts down is no cancellation: what may be repeated is left to another one. */
function cancelled(context: Context, pinned: ToolDefinition): RunToolResult {
  const reason: unknown = context.cancellationSignal.reason;
  const shutdown = reason instanceof Error && reason.message === 'WORKER_SHUTDOWN';
  if (!shutdown) throw reason;
  const message = `${pinned.name}: the worker shut down while it ran`;
  if (pinned.effect === 'once') return { ok: 'unknown', message };
  throw ApplicationFailure.create({ type: 'Retry', message });
}

function failed(type: CallErrorType, message: string): RunToolResult {
  return { ok: false, text: errorText({ type, message }) };
}

function toolContext(
  context: Context,
  { input, userContext }: Execution,
  signal: AbortSignal,
): ToolContext {
  const { info } = context;
  return {
    idempotencyKey: input.key,
    signal,
    heartbeat: (details?: Json) => context.heartbeat(details),
    log: (message: string, fields?: JsonObject) => context.log.info(message, { ...fields }),
    run: { ...runOf(info), turn: input.turn, step: input.step },
    call: { id: input.call.id, attempt: info.attempt },
    context: userContext,
  };
}

function runOf(info: Info): { id: string; runId: string } {
  const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
  return { id: workflowId, runId };
}

async function contextOf(deps: ActivityDependencies, input: RunToolInput): Promise<Json> {
  if (input.contextBlob === undefined) return input.context ?? null;
  const text = await deps.blobs.get(input.contextBlob);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- stored by loadAgent as JSON
  return (parseJson(text) ?? null) as Json;
}
