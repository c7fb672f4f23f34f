import { agentTool } from '../tools/built-in/agent-tool.js';
import type { Tool } from '../tools/tool.js';
import type { Agent, CalledAgent } from './define-agent.js';

const POLICIES: readonly unknown[] = [undefined, 'terminate', 'request_cancel', 'abandon'];

/** The tools with which an agent calls others. Throws with the value at fault and the cure. */
export function calledAgents(
  name: string,
  given: readonly (Agent | CalledAgent)[],
): { readonly tools: readonly Tool[]; readonly agents: readonly Agent[] } {
  const called = given.map((one, index): CalledAgent => {
    const entry: Partial<CalledAgent> = 'agent' in one ? one : { agent: one };
    const { agent } = entry;
    if (typeof agent?.name === 'string' && 'tools' in agent) return { ...entry, agent };
    throw new Error(
      `agent "${name}": agents[${index}] is no agent; give what defineAgent returned, or { agent, as, description }`,
    );
  });
  return {
    tools: called.map((entry) => toolFor(name, entry)),
    agents: called.map(({ agent }) => agent),
  };
}

function toolFor(name: string, { agent, as, description, parentClose }: CalledAgent): Tool {
  const what = description ?? agent.description;
  if (what === '') {
    throw new Error(
      `agent "${name}": agent "${agent.name}" has no description, so no model knows when to call it; ` +
        'give it `description`',
    );
  }
  if (!POLICIES.includes(parentClose)) {
    throw new Error(
      `agent "${name}": parentClose ${JSON.stringify(parentClose)}: give terminate, request_cancel or abandon`,
    );
  }
  return agentTool({
    agent: agent.name,
    description: what,
    ...(as !== undefined && { as }),
    ...(parentClose && { parentClose }),
  });
}
