import { learnSecrets } from '../../secrets/known.js';
import type { ModelCapabilities } from '../capabilities.js';
import type { Model, ModelRequest } from '../model.js';
import { ModelError } from '../model-error.js';
import { displayUrl } from '../openai/client.js';
import { DEFAULT_TIMEOUT_MS, wireModel, type WireModelOptions } from '../openai/wire-model.js';
import { anthropicApi } from './api.js';
import { getAnthropicCapabilities } from './capabilities.js';
import { createConnect, toAnthropicUrl } from './client.js';

export interface AnthropicModelOptions extends WireModelOptions {
  /** Absent: a placeholder is sent to a base URL; without one, calls reject with `credentials`. */
  readonly apiKey?: string;
  /** The environment variable with the key, for messages; default ANTHROPIC_API_KEY. */
  readonly apiKeyEnv?: string;
  /** Default: Anthropic's own. With or without `/v1` at its end. */
  readonly baseUrl?: string;
  /** What the model accepts; default, field by field: what is known about its name. */
  readonly capabilities?: Partial<ModelCapabilities>;
}

/**
 * Creates a model behind Anthropic's Messages API. Its calls reject with the reason of `context.signal`
 * if that aborts, else only with a `ModelError`. Throws a `TypeError` for a base URL or key that cannot
 * be used.
 */
export function anthropicModel(options: AnthropicModelOptions = {}): Model {
  const { apiKey, apiKeyEnv = 'ANTHROPIC_API_KEY', timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (apiKey === undefined && options.baseUrl === undefined) return withoutKey(apiKeyEnv);
  const baseUrl = toAnthropicUrl(options.baseUrl);
  if (apiKey !== undefined) learnSecrets({ values: [apiKey] });
  const connection = {
    api: anthropicApi,
    place: {
      baseUrl: displayUrl(baseUrl),
      hasKey: apiKey !== undefined,
      apiKeyEnv,
      urlVariable: 'ANTHROPIC_BASE_URL',
    },
    connect: createConnect(baseUrl, { apiKey, apiKeyEnv, timeoutMs }),
    capabilitiesOf: (model: string) =>
      getAnthropicCapabilities(toModelName(model), options.capabilities),
  };
  const model = wireModel(connection, options);
  return {
    call: (request: ModelRequest, context) =>
      model.call({ ...request, model: toModelName(request.model) }, context),
  };
}

/**
 * Returns true for a model whose name, `claude-…` or `anthropic/claude-…`, means Anthropic's own API.
 * Servers such as OpenRouter use the same names, so OPENAI_BASE_URL without ANTHROPIC_API_KEY means that
 * server.
 */
export function isOwnedByAnthropic(
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const isSet = (variable: string): boolean => (environment[variable]?.trim() ?? '') !== '';
  return isNamedAsAnthropic(name) && (isSet('ANTHROPIC_API_KEY') || !isSet('OPENAI_BASE_URL'));
}

/** Returns true for a name such as `claude-…` or `anthropic/claude-…`. */
export function isNamedAsAnthropic(name: string): boolean {
  return /^(?:anthropic\/|claude-)/.test(name);
}

/** Returns the name at the provider, without `anthropic/`. */
export function toModelName(name: string): string {
  return name.replace(/^anthropic\//, '');
}

function withoutKey(apiKeyEnv: string): Model {
  return {
    async call({ model }, { signal }) {
      signal.throwIfAborted();
      throw new ModelError(
        `No key for the model "${model}": set ${apiKeyEnv}, and restart the worker.`,
        { kind: 'credentials', type: 'no_credentials' },
      );
    },
  };
}
