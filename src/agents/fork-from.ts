/** Returns the agents whose runs this agent may fork, sorted. Throws unless it is a list of names. */
export function forkFromOf(agent: string, given: readonly string[]): readonly string[] {
  if (Array.isArray(given) && given.every(isAgentName)) return [...new Set(given)].toSorted();
  throw new Error(
    `agent "${agent}": forkFrom: expected a list of names of agents, got ${JSON.stringify(given)}`,
  );
}

/** Whether an agent may be named so. */
export function isAgentName(name: unknown): name is string {
  return typeof name === 'string' && /^[\w.-]{1,64}$/.test(name);
}
