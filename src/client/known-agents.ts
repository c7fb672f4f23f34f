import { InputError } from '../core/errors.js';
import type { GraphDefinition } from '../core/graph/definition.js';
import { droppedPart } from '../core/graph/walk.js';
import { show } from '../core/text/format-value.js';
import { visible } from '../core/text/summaries.js';
import { nearestFirst } from '../validation/nearest.js';
import { agentName, type AgentLike } from '../updates/run-input.js';

/**
 * What a client knows about an agent, to refuse a run that no worker could start. `Agent` is
 * assignable to it.
 */
export interface KnownAgent {
  readonly name: string;
  /** Null if its instructions are not a template; it then accepts no arguments. */
  readonly template: object | null;
  /** Its named prompts; absent if there are none. */
  readonly prompts?: ReadonlyMap<string, unknown>;
  /** Present if it is a graph. */
  readonly graph?: { readonly definition: GraphDefinition };
  /** The agents that it may call; they may also be started. */
  readonly agents: readonly KnownAgent[];
}

/** The maximum number of agent names that an error suggests. */
const NEAREST = 3;

/** The parts of a start that depend on the agent. */
interface KnownStart {
  readonly args?: object | undefined;
  readonly prompt?: string | undefined;
  readonly message?: unknown;
  readonly messages?: unknown;
  readonly input?: unknown;
}

/**
 * Returns why none of these agents can start the run, or which part of the start would have no
 * effect; null if one can.
 */
export function agentProblem(
  agents: readonly KnownAgent[],
  {
    agent,
    args = {},
    prompt,
    messages,
    message = messages ?? prompt,
    input,
  }: KnownStart & { readonly agent: string },
): string | null {
  const known = withCalled(agents);
  const found = known.find(({ name }) => name === agent);
  if (found === undefined) {
    const nearest = nearestFirst(
      agent,
      known.map(({ name }) => name),
    ).slice(0, NEAREST);
    const hint =
      nearest.length === 0 ? 'it has none' : `nearest: ${nearest.map(visible).join(', ')}`;
    return `agent: expected an agent of the configuration, got ${show(agent)} (${hint}); correct the name, or add the agent`;
  }
  const names = [...(found.prompts?.keys() ?? [])];
  if (prompt !== undefined && !names.includes(prompt)) {
    if (names.length === 0) return `prompt: agent ${show(agent)} has no prompts; give a message`;
    const nearest = nearestFirst(prompt, names).slice(0, NEAREST).map(visible).join(', ');
    return `prompt: expected a prompt of agent ${show(agent)}, got ${show(prompt)} (nearest: ${nearest}); correct the name`;
  }
  if (found.template === null && Object.keys(args).length > 0) {
    return `args: expected none for agent ${show(agent)}, whose instructions are not a template; remove them`;
  }
  return droppedPart({ name: agent, graph: found.graph?.definition }, { message, input });
}

function withCalled(agents: readonly KnownAgent[]): readonly KnownAgent[] {
  const all = new Set<KnownAgent>();
  const add = (agent: KnownAgent): void => {
    if (all.has(agent)) return;
    all.add(agent);
    agent.agents.forEach(add);
  };
  agents.forEach(add);
  return [...all];
}

/** Throws an `InputError` if the client knows its agents and none of them can start the run. */
export function assertKnownAgent(
  config: { readonly agents: readonly KnownAgent[] } | undefined,
  agent: AgentLike<unknown> | undefined,
  given: KnownStart = {},
): void {
  if (config === undefined || agent === undefined) return;
  const problem = agentProblem(config.agents, { ...given, agent: agentName(agent) });
  if (problem !== null) throw new InputError(problem);
}
