import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { type Config, defineConfig } from '../../src/config.js';
import { defineTool } from '../../src/tools/define-tool.js';

/** What the calls of agent `spender` share with those of other workers. */
export interface Allowances extends Pick<Config, 'budgets' | 'models'> {
  /** The model of the agent, by its name in `models`. */
  readonly model: string;
}

/** Returns the variable of a worker process that has agent `spender` only. A reply has five tokens at most. */
export function allowancesEnv(allowances: Allowances): Readonly<Record<string, string>> {
  return { ALLOWANCES: JSON.stringify(allowances) };
}

/** Returns the configuration that `allowancesEnv` has described. */
export function allowancesConfig(json: string): Config {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written above
  const { model, ...shared } = JSON.parse(json) as Allowances;
  const look = defineTool({
    name: 'look',
    description: 'looks',
    input: z.object({}),
    effect: 'read',
    execute: () => 'seen',
  });
  const settings = { maxOutputTokens: 5 };
  const spender = { name: 'spender', instructions: 'spend', model, settings, tools: [look] };
  return defineConfig({ agents: [defineAgent(spender)], ...shared });
}
