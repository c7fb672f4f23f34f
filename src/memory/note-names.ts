import type { Agent } from '../agents/agent.js';
import { withCalled } from '../agents/agent-definition.js';
import type { JsonObject } from '../core/text/json.js';
import { type KnownTool, noteKnown } from '../testing/known-names.js';
import { testedSchemas } from '../validation/rule-names.js';

/** A tool as data, such as a model request or a recording has it. */
interface ToolData {
  readonly name: string;
  readonly parameters?: JsonObject;
}

/**
 * Notes which tools a run could call, so that a matcher can refuse a misspelled name. `others`: the tools
 * that are known as data, such as those of MCP servers.
 */
export function noteNames(
  run: object,
  agents: readonly Agent[],
  others: readonly ToolData[],
): void {
  const all = withCalled(agents);
  const tools = new Map<string, KnownTool>();
  const add = (name: string, schemas: readonly JsonObject[] = [{}]): void =>
    void tools.set(name, { name, schemas });
  add('read_result');
  for (const agent of all) {
    // The tool that calls an agent has its name, and a function of a graph that of its node.
    for (const name of [agent.name, ...(agent.graph?.functions.keys() ?? [])]) add(name);
  }
  for (const { name, parameters = {} } of others) add(name, [parameters]);
  for (const tool of all.flatMap((agent) => agent.tools.tools)) add(tool.name, testedSchemas(tool));
  const names = [...tools.keys()];
  const unlisted = all
    .flatMap(({ mcp }) => mcp.map(({ name }) => name))
    .filter((server) => !names.some((name) => name.startsWith(`${server}__`)));
  noteKnown(run, { tools: [...tools.values()], unlisted });
}
