import { z } from 'zod';
import type { Agent } from './agents/agent.js';
import { isAgent, assertRuleNames, assertRules, requestOptions } from './agents/options.js';
import { withCalled } from './agents/agent-definition.js';
import type { RequestOptions } from './agents/agent-parts.js';
import { InputError } from './core/errors.js';
import { show } from './core/text/text.js';
import { findPrice, findWindow } from './models/known-models.js';
import type { ModelEntry } from './models/model-entry.js';
import { secretNamesProblem } from './secrets/known.js';
import {
  checkOptions,
  expected,
  uniquelyNamed,
  type OptionSchemas,
  likelyMeant,
} from './validation/check-options.js';

/** The default export of `perdure.config.ts`. */
export interface Config extends RequestOptions {
  /** The agents that workers with this configuration serve; each name is unique. */
  readonly agents: readonly Agent[];
  /**
   * Models by the names that agents use; other names are passed to the OpenAI adapter unchanged.
   */
  readonly models?: Readonly<Record<string, ModelEntry>>;
  /** The Temporal task queue; default: PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /** `host:port` of the Temporal server. */
  readonly address?: string;
  /** The Temporal namespace. */
  readonly namespace?: string;
  /**
   * Names of further environment variables whose values must never leave a worker. Variables whose
   * names look secret (a segment such as KEY or TOKEN) need not be listed.
   */
  readonly secrets?: readonly string[];
}

const configOptions = z.strictObject({
  agents: uniquelyNamed(expected<Agent>('an agent; make it with defineAgent({…})', isAgent)),
  models: z.looseObject({}).optional(),
  taskQueue: z.string().optional(),
  address: z.string().optional(),
  namespace: z.string().optional(),
  secrets: z.unknown().optional(),
  ...requestOptions,
} satisfies OptionSchemas<Config>);

/**
 * Checks a configuration and returns it frozen. Throws an `InputError` with a line
 * `field: expected X, got Y; fix` for each fault.
 *
 * @example
 * ```ts
 * // perdure.config.ts
 * import { defineAgent, defineConfig } from 'perdure';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'local' });
 *
 * export default defineConfig({
 *   agents: [clerk],
 *   models: { local: { baseUrl: 'http://127.0.0.1:11434/v1', model: 'qwen3' } },
 *   taskQueue: 'orders',
 *   rules: [{ tool: 'delete_*', then: 'ask' }],
 * });
 * ```
 */
export function defineConfig(config: Config): Config {
  checkOptions('config', { schema: configOptions, options: config });
  const problem = secretNamesProblem(config.secrets, 'config');
  if (problem !== null) throw new InputError(problem);
  assertRules(config.rules, 'config');
  const agents = withCalled(config.agents);
  assertRuleNames(config.rules, agents, 'config');
  assertModelNames(agents, Object.keys(config.models ?? {}));
  return Object.freeze({ ...config });
}

/**
 * Throws an `InputError` for a model that is almost the name of an entry, and would be sent to a
 * provider that does not have it. Names with other digits, such as those of another version, are
 * names of other models.
 */
function assertModelNames(agents: readonly Agent[], entries: readonly string[]): void {
  for (const { name, model } of agents) {
    if (model === null || model === 'demo' || entries.includes(model)) continue;
    if (findPrice(model) !== null || findWindow(model) !== null) continue;
    const meant = likelyMeant(model, entries);
    if (meant === undefined || digits(meant) !== digits(model)) continue;
    throw new InputError(
      `config: agent ${show(name)}: model: expected an entry of \`models\`, got ${show(model)} (did you mean ` +
        `${show(meant)}); correct it, or add an entry ${show(model)}: {} for a model with this name`,
    );
  }
}

function digits(name: string): string {
  return name.replaceAll(/\D/g, '');
}
