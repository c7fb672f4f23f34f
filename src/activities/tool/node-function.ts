import { z } from 'zod';
import type { NodeFunction } from '../../agents/graph-parts.js';
import { nodeOfCall } from '../../core/graph/node-tool.js';
import type { ToolDefinition } from '../../core/definition/definition.js';
import type { Tool } from '../../tools/tool.js';
import type { PinnedAgent } from '../definitions.js';

/** What the workflow gives to a node's function. The function's own schema checks the state. */
const nodeInput = z.object({
  state: z.record(z.string(), z.json()),
  item: z.json().optional(),
});

/**
 * Returns the function of a graph's node in the form of a tool, so that it is executed as one: with a
 * time limit, attempts, cancellation, and redaction. Undefined if this worker does not have it.
 */
export function findNodeFunction(
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
