import type { Config } from '../config.js';
import { isObject } from '../core/text/json.js';
import { serverVariables } from '../mcp/connection.js';

/**
 * Returns the names of all environment variables that a configuration uses for keys or lists as
 * secrets.
 */
export function collectSecretNames({
  agents,
  models = {},
  secrets = [],
  notify,
}: Pick<Config, 'agents' | 'models' | 'secrets' | 'notify'>): readonly string[] {
  const keys = Object.values(models).flatMap((entry) =>
    'call' in entry || entry.apiKeyEnv === undefined ? [] : [entry.apiKeyEnv],
  );
  const webhook = typeof notify === 'object' ? [notify.secretEnv] : [];
  return [...keys, ...webhook, ...secrets, ...withCalledAgents(agents).flatMap(agentSecretNames)];
}

type Agents = Config['agents'];

function withCalledAgents(agents: Agents): Agents {
  const all = new Set<Agents[number]>();
  const add = (agent: Agents[number]): void => {
    if (all.has(agent)) return;
    all.add(agent);
    agent.agents.forEach(add);
  };
  agents.forEach(add);
  return [...all];
}

function agentSecretNames({ mcp, settings }: Agents[number]): readonly string[] {
  const native: unknown = settings['nativeTools'];
  const tools: readonly unknown[] = Array.isArray(native) ? native : [];
  const tokens = tools.flatMap((tool): readonly string[] => {
    const name = isObject(tool) ? tool['authorizationEnv'] : undefined;
    return typeof name === 'string' ? [name] : [];
  });
  return [...mcp.flatMap((server) => serverVariables(server)), ...tokens];
}
