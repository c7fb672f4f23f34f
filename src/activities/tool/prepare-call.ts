import type { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { readFor } from '../../storage/worker-store.js';
import type { ToolBlock } from '../../core/blocked.js';
import { errorText } from '../../core/calls/calls.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { ActivityProblem } from '../../core/failure.js';
import { parseArguments } from '../../tools/arguments/arguments.js';
import { checkArguments } from '../../tools/arguments/check-arguments.js';
import type { Tool } from '../../tools/tool.js';
import type { RunToolInput, RunToolResult } from '../../core/contract.js';
import type { PinnedAgent } from '../definitions.js';
import type { ActivityDependencies } from '../dependencies.js';
import { effectChanged, START_ANEW } from './effect-changed.js';
import { mcpTool, type ToolBlocked } from './mcp-tool.js';
import { ownWorkflow } from '../query-workflow.js';
import { pinnedInput, unchanged } from './pinned-input.js';
import { searchDelayMs } from '../search-delay.js';

export type PreparedCall =
  | {
      readonly ok: true;
      readonly agent: PinnedAgent;
      readonly tool: Tool;
      /** The tool as the run knows it; its effect, timeouts and attempts hold. */
      readonly pinned: ToolDefinition;
      readonly value: unknown;
    }
  | { readonly ok: false; readonly result: RunToolResult };

const FIRST_PROBE_MS = 15_000;
const LONGEST_PROBE_MS = 300_000;

/**
 * Finds the code for a call and checks its arguments. Code is not data: where this worker has moved
 * on since the run began, they must fit the pinned schema and the current one; a tool that is gone,
 * or has become another, blocks the run.
 */
export async function prepareCall(
  deps: ActivityDependencies,
  context: Context,
  input: RunToolInput,
): Promise<PreparedCall> {
  const { call } = input;
  const agent = await deps.definitions.find(input.definition, () =>
    ownWorkflow(context, deps).definition(),
  );
  const { name } = call;
  const pinned = agent.definition.tools.find((tool) => tool.name === name);
  const { accepted } = input;
  const resolve = `perdure resolve ${context.info.workflowExecution?.workflowId ?? 'RUN'} ${call.id}`;
  const remote = pinned?.mcp && (await mcpTool(deps, agent, { pinned, accepted, resolve }));
  if (remote?.ok === false) throw block(context, input, remote);
  const tool = remote?.tool ?? agent.tools.get(name);
  if (pinned === undefined || tool === undefined) {
    throw block(context, input, {
      reason: 'tool_missing',
      message: `tool "${name}" of agent "${agent.definition.name}" is not on this worker; deploy it again, or cancel the run`,
    });
  }
  const text =
    call.blob === undefined
      ? call.arguments
      : await readFor(`the arguments of ${name} (${call.id})`, call.blob, deps.blobs);
  const parsed = parseArguments(text);
  if (!parsed.ok) return refused(parsed.problem);
  const checked = await checkArguments(tool, parsed.value);
  if (!agent.current && remote === undefined) {
    const change = await changed(pinned, tool, { value: parsed.value, fits: checked.ok });
    if (change !== null) throw block(context, input, { reason: 'tool_changed', message: change });
  }
  if (!checked.ok) return refused(checked.problem);
  return { ok: true, agent, tool, pinned, value: checked.value };
}

/**
 * Returns how the tool has changed since the run pinned it, if that stands in the way of this call:
 * another effect, or arguments that were right and are refused now. Nothing else blocks a call;
 * timeouts, attempts, `repeat`, and `ends` are those that the run pinned.
 */
async function changed(
  pinned: ToolDefinition,
  tool: Tool,
  call: { value: unknown; fits: boolean },
): Promise<string | null> {
  if (tool.effect !== pinned.effect) return effectChanged(pinned, tool.effect);
  if (unchanged(pinned, tool) !== undefined) return null;
  const fitsPinned = await pinnedInput(pinned).safeParseAsync(call.value);
  if (!fitsPinned.success || call.fits) return null;
  return `the arguments fit tool "${pinned.name}" as it was when the run began, not as it is now; ${START_ANEW}`;
}

/** The first time the workflow is told; a probe that meets the same is tried again by Temporal. */
export function block(
  context: Context,
  input: { readonly blocked?: ToolBlock },
  found: ToolBlocked,
): ApplicationFailure {
  const again = input.blocked === found.reason;
  const { attempt } = context.info;
  const delayMs = Math.min(FIRST_PROBE_MS * 2 ** (attempt - 1), LONGEST_PROBE_MS);
  const { reason, message, definition } = found;
  const problem: ActivityProblem = {
    type: 'blocked',
    reason,
    message,
    ...(definition !== undefined && { definition }),
  };
  return ApplicationFailure.create({
    type: found.reason,
    message: found.message,
    nonRetryable: !again,
    details: [problem],
    ...(again && {
      nextRetryDelay: found.reason === 'tool_missing' ? searchDelayMs(attempt) : delayMs,
    }),
  });
}

function refused(problem: Parameters<typeof errorText>[0]): PreparedCall {
  return { ok: false, result: { ok: false, text: errorText(problem) } };
}
