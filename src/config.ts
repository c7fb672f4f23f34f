import type { Agent } from './agents/define-agent.js';
import type { ModelEntry } from './models/catalog.js';
import { assertSecretNames } from './secrets/names.js';

export interface Config {
  readonly agents: readonly Agent[];
  readonly models?: Readonly<Record<string, ModelEntry>>;
  readonly taskQueue?: string;
  readonly address?: string;
  readonly namespace?: string;
  /**
   * Names of further environment variables whose values must never leave a worker. Those that look
   * secret by their names (a segment such as KEY or TOKEN) are known without being listed.
   */
  readonly secrets?: readonly string[];
}

const FIELDS = ['agents', 'models', 'taskQueue', 'address', 'namespace', 'secrets'];

/** The default export of perdure.config.ts. Throws with the value at fault and the possible ones. */
export function defineConfig(config: Config): Config {
  const unknown = Object.keys(config).find((key) => !FIELDS.includes(key));
  if (unknown !== undefined) {
    throw new Error(`config: no such field "${unknown}"; there are ${FIELDS.join(', ')}`);
  }
  if (!Array.isArray(config.agents)) {
    throw new Error('config: agents must be a list of what defineAgent returned');
  }
  assertSecretNames(config.secrets, 'config');
  const position = config.agents.findIndex((agent: Partial<Agent> | null) => !agent?.tools?.names);
  if (position !== -1) {
    throw new Error(`config: agents[${position}] is no agent; make it with defineAgent({…})`);
  }
  const names = config.agents.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new Error(`config: two agents are named "${twice}"; rename one of them`);
  }
  return Object.freeze({ ...config });
}
