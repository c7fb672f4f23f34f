import { learnSecrets } from '../../secrets/known.js';
import type { ModelCapabilities } from '../capabilities.js';
import { getCapabilities } from '../known-models.js';
import type { Model } from '../model.js';
import type { OpenAiApi } from './api.js';
import { chatApi } from './chat/index.js';
import { createClient, displayUrl, normalizeBaseUrl, OPENAI_URL } from './client.js';
import { responsesApi } from './responses/index.js';
import { DEFAULT_TIMEOUT_MS, wireModel, type WireModelOptions } from './wire-model.js';

/** The protocols of `openAiModel`, by their names in a config. */
export type OpenAiApiName = 'chat' | 'responses';

export interface OpenAiModelOptions extends WireModelOptions {
  /** Absent: a placeholder is sent; most servers on one's own machine need no key. */
  readonly apiKey?: string;
  /** The environment variable that the key comes from, which errors name; default OPENAI_API_KEY. */
  readonly apiKeyEnv?: string;
  /** Default: OpenAI's own. */
  readonly baseUrl?: string;
  /** The API that the server speaks; default `chat`. */
  readonly api?: OpenAiApiName;
  /** What the model accepts; default, field by field: what is known about its name. */
  readonly capabilities?: Partial<ModelCapabilities>;
}

const APIS: Readonly<Record<OpenAiApiName, OpenAiApi>> = { chat: chatApi, responses: responsesApi };

export const DEFAULT_KEY_ENV = 'OPENAI_API_KEY';

/**
 * Creates a model behind OpenAI's Chat Completions or Responses API, or any server that speaks one of
 * them. Its calls reject with the reason of `context.signal` if that aborts, else only with a
 * `ModelError`. Throws a `TypeError` for a base URL or key that cannot be used.
 */
export function openAiModel(options: OpenAiModelOptions = {}): Model {
  const { apiKey, apiKeyEnv = DEFAULT_KEY_ENV, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const baseUrl = normalizeBaseUrl(options.baseUrl ?? OPENAI_URL);
  if (apiKey !== undefined) learnSecrets({ values: [apiKey] });
  const client = createClient(baseUrl, { apiKey, apiKeyEnv, timeoutMs });
  const connection = {
    api: APIS[options.api ?? 'chat'],
    place: { baseUrl: displayUrl(baseUrl), hasKey: apiKey !== undefined, apiKeyEnv },
    connect: () => client,
    capabilitiesOf: (model: string) => getCapabilities(model, options.capabilities),
  };
  return wireModel(connection, options);
}
