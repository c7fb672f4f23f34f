import { z } from 'zod';
import type { Context } from '@temporalio/activity';
import type { NodeFunction } from '../../agents/graph-parts.js';
import { readFor } from '../../storage/worker-store.js';
import { errorText } from '../../core/calls/call-result.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { definedTool, nodeOfCall, toolAt } from '../../core/graph/node-tool.js';
import type { JsonObject } from '../../core/json.js';
import { parseArguments } from '../../tools/arguments/arguments.js';
import { checkArguments } from '../../tools/arguments/check-arguments.js';
import type { Tool } from '../../tools/tool.js';
import type { RunToolInput, RunToolResult } from '../../core/contract.js';
import type { PinnedAgent } from '../definitions.js';
import type { ActivityDependencies } from '../dependencies.js';
import { blockedToolFailure } from '../failures.js';
import { queryWorkflow } from '../query-workflow.js';
import { findMcpTool } from './mcp-tool.js';
import { effectChangedMessage, ifUnchanged, START_NEW_RUN, toPinnedInput } from './pinned-tool.js';

export type PreparedCall =
  | {
      readonly ok: true;
      readonly agent: PinnedAgent;
      readonly tool: Tool;
      /** The run's pinned definition of the tool; its effect, timeouts, and attempts apply. */
      readonly pinned: ToolDefinition;
      /** The original arguments. */
      readonly original: JsonObject;
      /** The checked arguments. */
      readonly value: unknown;
    }
  | { readonly ok: false; readonly result: RunToolResult };

/**
 * Finds the code for a call and checks the call's arguments. The worker's code may be newer than
 * the run; the arguments must then fit both the pinned and the current schema. Throws the failure
 * that blocks the run if the tool is missing or has changed.
 */
export async function prepareCall(
  deps: ActivityDependencies,
  context: Context,
  input: RunToolInput,
): Promise<PreparedCall> {
  const { call } = input;
  const agent = await deps.definitions.find(input.definition, () =>
    queryWorkflow(context, deps).definition(),
  );
  const { pinned, tool } = await findTool(deps, context, { input, agent });
  const text =
    call.blob === undefined
      ? call.arguments
      : await readFor(`the arguments of ${call.name} (${call.id})`, call.blob, deps.blobs);
  const parsed = parseArguments(text);
  if (!parsed.ok) return refuse(parsed.problem);
  const checked = await checkArguments(tool, parsed.value);
  if (!agent.current && pinned.mcp === undefined) {
    const message = await findChange(pinned, tool, { value: parsed.value, fits: checked.ok });
    if (message !== null) {
      throw blockedToolFailure(context, input, { reason: 'tool_changed', message });
    }
  }
  if (!checked.ok) return refuse(checked.problem);
  return { ok: true, agent, tool, pinned, original: parsed.value, value: checked.value };
}

/** Returns the pinned tool and the worker's code for it. Throws the failure that blocks the run. */
async function findTool(
  deps: ActivityDependencies,
  context: Context,
  { input, agent }: { readonly input: RunToolInput; readonly agent: PinnedAgent },
): Promise<{ readonly pinned: ToolDefinition; readonly tool: Tool }> {
  const { accepted, call } = input;
  const { id, name } = call;
  const known = definedTool(agent.definition, name);
  const pinned = known && toolAt(agent.definition, known, call);
  const resolve = `perdure resolve ${context.info.workflowExecution?.workflowId ?? 'RUN'} ${id}`;
  const remote = pinned?.mcp && (await findMcpTool(deps, agent, { pinned, accepted, resolve }));
  if (remote?.ok === false) throw blockedToolFailure(context, input, remote);
  const own = agent.tools.get(name) ?? (pinned && findNodeFunction(agent, pinned));
  const tool = remote?.tool ?? own;
  if (pinned !== undefined && tool !== undefined) return { pinned, tool };
  throw blockedToolFailure(context, input, {
    reason: 'tool_missing',
    message: missingMessage(agent, name),
  });
}

function missingMessage({ definition }: PinnedAgent, name: string): string {
  const node = nodeOfCall({ name });
  const what =
    node === null
      ? `tool "${name}" of agent "${definition.name}"`
      : `the function of node "${node}" of graph "${definition.name}"`;
  return `${what} is not on this worker; deploy it again, or cancel the run`;
}

/**
 * Returns the change of the tool since the run pinned it, if it prevents this call: a different
 * effect, or valid arguments that are now refused. Null if the call may be made. Other changes do
 * not matter, because timeouts, attempts, `repeat`, and `ends` are the pinned ones.
 */
async function findChange(
  pinned: ToolDefinition,
  tool: Tool,
  call: { value: unknown; fits: boolean },
): Promise<string | null> {
  if (tool.effect !== pinned.effect) return effectChangedMessage(pinned, tool.effect);
  if (ifUnchanged(pinned, tool) !== undefined) return null;
  const fitsPinned = await toPinnedInput(pinned).safeParseAsync(call.value);
  if (!fitsPinned.success || call.fits) return null;
  return `the arguments fit tool "${pinned.name}" as of the start of the run, but not its current version; ${START_NEW_RUN}`;
}

function refuse(problem: Parameters<typeof errorText>[0]): PreparedCall {
  return { ok: false, result: { ok: false, text: errorText(problem) } };
}

/** The workflow's input to a node's function. The function's own schema checks the state. */
const nodeInput = z.object({
  state: z.record(z.string(), z.json()),
  item: z.json().optional(),
});

/**
 * Returns the function of a graph's node in the form of a tool, so it is executed as one: with a
 * time limit, attempts, cancellation, and redaction. Undefined if this worker does not have it.
 */
function findNodeFunction(
  { agent }: Pick<PinnedAgent, 'agent'>,
  pinned: ToolDefinition,
): Tool | undefined {
  const node = nodeOfCall(pinned);
  const run = node === null ? undefined : agent?.graph?.functions.get(node);
  return run && toTool(pinned, run);
}

function toTool(pinned: ToolDefinition, run: NodeFunction): Tool {
  const { name, description, parameters, effect, timeoutMs, heartbeatMs, attempts } = pinned;
  const execute: Tool['execute'] = async (input, context) => {
    const { state, item } = nodeInput.parse(input);
    return await run({ state, ...(item !== undefined && { item }) }, context);
  };
  return {
    name,
    description,
    parameters,
    effect,
    timeoutMs,
    heartbeatMs,
    attempts,
    input: nodeInput,
    execute,
    executeParsed: execute,
  };
}
