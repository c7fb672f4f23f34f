import { z } from 'zod';
import type { Agent } from './agents/agent.js';
import { isAgent } from './agents/options.js';
import { assertRules, requestOptions } from './agents/check-requests.js';
import type { RequestOptions } from './agents/requests.js';
import { InputError } from './core/errors.js';
import type { ModelEntry } from './models/model-entry.js';
import { secretNamesProblem } from './secrets/names.js';
import {
  checkOptions,
  expected,
  uniquelyNamed,
  type OptionSchemas,
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
  return Object.freeze({ ...config });
}
