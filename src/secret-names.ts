import type { Config } from './config.js';
import { isObject } from './core/json.js';
import { handedNames } from './mcp/handed.js';

/** Throws for what is not a list of names of environment variables. `at`: whose option it is. */
export function assertSecretNames(names: unknown, at: string): void {
  if (names === undefined) return;
  const list: readonly unknown[] = Array.isArray(names) ? names : [names];
  const wrong = list.findIndex((name) => typeof name !== 'string' || !/^[^\s=]+$/.test(name));
  if (Array.isArray(names) && wrong === -1) return;
  // The value may be the secret itself.
  const got = Array.isArray(names) ? `something else at [${wrong}]` : typeof names;
  throw new Error(
    `${at}: secrets: expected a list of names of environment variables, got ${got}; write for example ` +
      "secrets: ['LICENSE_ID']",
  );
}

/** Returns the names of all environment variables that a configuration uses as keys or lists as secrets. */
export function secretNamesOf({
  agents,
  models = {},
  secrets = [],
}: Pick<Config, 'agents' | 'models' | 'secrets'>): readonly string[] {
  const keys = Object.values(models).flatMap((entry) =>
    'call' in entry || entry.apiKeyEnv === undefined ? [] : [entry.apiKeyEnv],
  );
  return [...keys, ...secrets, ...withCalled(agents).flatMap(namesOfAgent)];
}

type Agents = Config['agents'];

function withCalled(agents: Agents): Agents {
  const all = new Set<Agents[number]>();
  const add = (agent: Agents[number]): void => {
    if (all.has(agent)) return;
    all.add(agent);
    agent.agents.forEach(add);
  };
  agents.forEach(add);
  return [...all];
}

function namesOfAgent({ mcp, settings }: Agents[number]): readonly string[] {
  const native: unknown = settings['nativeTools'];
  const tools: readonly unknown[] = Array.isArray(native) ? native : [];
  const tokens = tools.flatMap((tool): readonly string[] => {
    const name = isObject(tool) ? tool['authorizationEnv'] : undefined;
    return typeof name === 'string' ? [name] : [];
  });
  return [...mcp.flatMap((server) => handedNames(server)), ...tokens];
}
