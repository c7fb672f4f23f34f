import OpenAI, { APIError } from 'openai';
import { learnSecrets } from '../../secrets/known.js';
import {
  type LocalServer,
  type ModelCapabilities,
  findLocalServer,
  getCapabilities,
} from '../known-models.js';
import { type Model, ModelError } from '../model.js';
import { uncallableModel } from '../uncallable.js';
import type { WireApi } from '../wire/api.js';
import {
  type BaseUrl,
  PLACEHOLDER_KEY,
  type WireClient,
  checkKey,
  events,
  parseBaseUrl,
} from '../wire/client.js';
import { wireClientOptions } from '../wire/fetch.js';
import { toProviderFailure } from '../wire/read-error.js';
import { DEFAULT_TIMEOUT_MS, type WireModelOptions, wireModel } from '../wire/wire-model.js';
import { chatApi } from './chat/index.js';
import { responsesApi } from './responses/reply.js';

/** The protocols of `openAiModel`, by their names in a config. */
export type OpenAiApiName = 'chat' | 'responses';

export interface OpenAiModelOptions extends WireModelOptions {
  /** Absent: a placeholder is sent, because most local servers need no key. */
  readonly apiKey?: string;
  /** The environment variable that holds the key, for errors; default OPENAI_API_KEY. */
  readonly apiKeyEnv?: string;
  /** Default: OpenAI's own. */
  readonly baseUrl?: string;
  /** The API that the server speaks; default `chat`. */
  readonly api?: OpenAiApiName;
  /** The model's capabilities; default, field by field: known values for its name. */
  readonly capabilities?: Partial<ModelCapabilities>;
}

const APIS: Readonly<Record<OpenAiApiName, WireApi>> = { chat: chatApi, responses: responsesApi };

const OPENAI_URL = 'https://api.openai.com/v1';
export const DEFAULT_KEY_ENV = 'OPENAI_API_KEY';

/**
 * Creates a model for OpenAI's Chat Completions or Responses API, or for any server with one of
 * these APIs. Its calls reject with the reason of `context.signal` if that aborts, else only with a
 * `ModelError`. Throws a `TypeError` for an unusable base URL or key.
 */
export function openAiModel(options: OpenAiModelOptions = {}): Model {
  const { apiKey, apiKeyEnv = DEFAULT_KEY_ENV, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const baseUrl = parseBaseUrl(options.baseUrl ?? OPENAI_URL);
  if (apiKey !== undefined) learnSecrets({ values: [apiKey] });
  const client = createOpenAiClient(baseUrl, { apiKey, apiKeyEnv, timeoutMs });
  const connection = {
    api: APIS[options.api ?? 'chat'],
    place: { baseUrl: baseUrl.url, hasKey: apiKey !== undefined, apiKeyEnv },
    connect: () => client,
    capabilitiesOf: (model: string) => getCapabilities(model, options.capabilities),
  };
  return wireModel(connection, options);
}

interface ClientSettings {
  readonly apiKey: string | undefined;
  /** The environment variable that holds the key, for errors. */
  readonly apiKeyEnv: string;
  readonly timeoutMs: number;
}

/**
 * Throws a `TypeError` for a key that no HTTP header can carry. Without a key, a placeholder is
 * sent.
 */
export function createOpenAiClient(
  baseUrl: BaseUrl,
  { apiKey, apiKeyEnv, timeoutMs }: ClientSettings,
): WireClient {
  const key = apiKey === undefined ? PLACEHOLDER_KEY : checkKey(apiKey, apiKeyEnv);
  const client = new Client({
    apiKey: key,
    // Azure's classic addresses take the key from this header alone.
    ...(baseUrl.search.includes('api-version=') && { defaultHeaders: { 'api-key': key } }),
    ...wireClientOptions({ baseUrl, timeoutMs }),
  });
  return {
    async post(path, options) {
      try {
        return await client.post(path, options).asResponse();
      } catch (error) {
        throw error instanceof APIError ? toProviderFailure(error) : error;
      }
    },
    events,
  };
}

/** OpenAI's client keeps only the field `error` of an error's body; this one keeps the body. */
class Client extends OpenAI {
  protected override makeStatusError(
    status: number,
    error: object | undefined,
    message: string | undefined,
    headers: Headers,
  ): APIError {
    return super.makeStatusError(status, { error: error ?? message }, undefined, headers);
  }
}

interface EnvironmentModelOptions extends Omit<OpenAiModelOptions, 'apiKey' | 'baseUrl'> {
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
  return uncallableModel(async () => {
    const found = await findLocalServer(localServers);
    const hint =
      found === null ? '' : ` ${found.name} answers here: OPENAI_BASE_URL=${found.baseUrl}`;
    return new ModelError(
      `No model provider is set: set ${apiKeyEnv}, or OPENAI_BASE_URL for a server that speaks OpenAI's API.${hint}`,
      { kind: 'credentials', type: 'no_credentials' },
    );
  });
}
