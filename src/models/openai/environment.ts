import { findLocalServer, type LocalServer } from '../local-servers.js';
import type { Model } from '../model.js';
import { ModelError } from '../model-error.js';
import { openAiModel, type OpenAiModelOptions } from './model.js';

export interface EnvironmentModelOptions extends Omit<OpenAiModelOptions, 'apiKey' | 'baseUrl'> {
  /** Where to look for a model server on this machine when nothing is set; default: the usual ports. */
  readonly localServers?: readonly LocalServer[];
}

/** Rejects each call, sends nothing, and names what to set. */
function modelWithoutProvider(localServers: readonly LocalServer[] | undefined): Model {
  return {
    async call(_request, { signal }) {
      signal.throwIfAborted();
      const found = await findLocalServer(localServers);
      signal.throwIfAborted();
      const hint =
        found === null ? '' : ` ${found.name} answers here: OPENAI_BASE_URL=${found.baseUrl}`;
      throw new ModelError(
        `No model provider is set: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that speaks OpenAI's API, and restart the worker.${hint}`,
        { kind: 'credentials', type: 'no_credentials' },
      );
    },
  };
}

/**
 * The model that the environment names by `OPENAI_API_KEY` and `OPENAI_BASE_URL`. With neither,
 * no request is ever made: each call rejects with kind `credentials`.
 */
export function openAiModelFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  { localServers, ...options }: EnvironmentModelOptions = {},
): Model {
  const apiKey = environment['OPENAI_API_KEY']?.trim() ?? '';
  const baseUrl = environment['OPENAI_BASE_URL']?.trim() ?? '';
  if (apiKey === '' && baseUrl === '') return modelWithoutProvider(localServers);
  return openAiModel({
    variable: (name) => environment[name],
    ...options,
    ...(apiKey !== '' && { apiKey }),
    ...(baseUrl !== '' && { baseUrl }),
  });
}
