import { findLocalServer, type LocalServer } from '../local-servers.js';
import type { Model } from '../model.js';
import { ModelError } from '../model-error.js';
import { DEFAULT_KEY_ENV, openAiModel, type OpenAiModelOptions } from './model.js';

export interface EnvironmentModelOptions extends Omit<OpenAiModelOptions, 'apiKey' | 'baseUrl'> {
  /** The local model servers to look for if no variable is set; default: the usual ports. */
  readonly localServers?: readonly LocalServer[];
}

/**
 * Creates the model that `apiKeyEnv` (default OPENAI_API_KEY) and OPENAI_BASE_URL name. If neither
 * is set, it never sends a request: each call rejects with a `ModelError` of kind `credentials`.
 */
export function openAiModelFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  { localServers, ...options }: EnvironmentModelOptions = {},
): Model {
  const { apiKeyEnv = DEFAULT_KEY_ENV } = options;
  const apiKey = environment[apiKeyEnv]?.trim() ?? '';
  const baseUrl = environment['OPENAI_BASE_URL']?.trim() ?? '';
  if (apiKey === '' && baseUrl === '') return createModelWithoutProvider(apiKeyEnv, localServers);
  return openAiModel({
    variable: (name) => environment[name],
    ...options,
    ...(apiKey !== '' && { apiKey }),
    ...(baseUrl !== '' && { baseUrl }),
  });
}

/**
 * Creates a model that always rejects. The error names the variables to set and, if one answers, a
 * local model server.
 */
function createModelWithoutProvider(
  apiKeyEnv: string,
  localServers: readonly LocalServer[] | undefined,
): Model {
  return {
    async call(_request, { signal }) {
      signal.throwIfAborted();
      const found = await findLocalServer(localServers);
      signal.throwIfAborted();
      const hint =
        found === null ? '' : ` ${found.name} answers here: OPENAI_BASE_URL=${found.baseUrl}`;
      throw new ModelError(
        `No model provider is set: set ${apiKeyEnv}, or OPENAI_BASE_URL for a server that speaks OpenAI's API, and restart the worker.${hint}`,
        { kind: 'credentials', type: 'no_credentials' },
      );
    },
  };
}
