import { learnSecrets } from '../../secrets/known.js';
import type { ModelCapabilities } from '../known-models.js';
import { type Model, ModelError, type ModelRequest } from '../model.js';
import { uncallableModel } from '../uncallable.js';
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
import { anthropicApi } from './api.js';
import { getAnthropicCapabilities } from './assistant.js';

const ANTHROPIC_URL = 'https://api.anthropic.com/v1';

/**
 * Returns the URL up to `/v1`, which Anthropic's variable omits and OpenAI's includes. Throws a
 * `TypeError` for an unusable URL.
 */
function toAnthropicUrl(text = ANTHROPIC_URL): BaseUrl {
  const { url, search } = parseBaseUrl(text, {
    key: 'ANTHROPIC_API_KEY',
    example: 'ANTHROPIC_BASE_URL=https://api.anthropic.com',
  });
  return { url: url.endsWith('/v1') ? url : `${url}/v1`, search };
}

/**
 * Returns a function that loads Anthropic's SDK at its first call and creates the client. A worker
 * without such a model never loads the SDK. Throws a `TypeError` for a key that no HTTP header can
 * carry.
 */
function createConnect(
  baseUrl: BaseUrl,
  {
    apiKey = PLACEHOLDER_KEY,
    apiKeyEnv,
    timeoutMs,
  }: {
    readonly apiKey: string | undefined;
    readonly apiKeyEnv: string;
    readonly timeoutMs: number;
  },
): () => Promise<WireClient> {
  const key = checkKey(apiKey, apiKeyEnv);
  let client: Promise<WireClient> | undefined;
  return () => {
    client ??= loadClient(baseUrl, { apiKey: key, timeoutMs }).catch((error: unknown) => {
      // The next call loads it again.
      client = undefined;
      throw error;
    });
    return client;
  };
}

async function loadClient(
  baseUrl: BaseUrl,
  { apiKey, timeoutMs }: { readonly apiKey: string; readonly timeoutMs: number },
): Promise<WireClient> {
  const { Anthropic, APIError } = await import('@anthropic-ai/sdk');

  /** The SDK drops the text of an error body that is not JSON; this one keeps it. */
  class Client extends Anthropic {
    protected override makeStatusError(
      status: number,
      error: object | undefined,
      message: string | undefined,
      headers: Headers,
    ) {
      return super.makeStatusError(status, error ?? { error: message }, undefined, headers);
    }
  }

  const client = new Client({
    apiKey,
    // The SDK would otherwise read a second key from the environment.
    authToken: null,
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

interface AnthropicModelOptions extends WireModelOptions {
  /** Absent: a placeholder is sent to a base URL; without one, calls reject with `credentials`. */
  readonly apiKey?: string;
  /** The environment variable with the key, for messages; default ANTHROPIC_API_KEY. */
  readonly apiKeyEnv?: string;
  /** Default: Anthropic's own. With or without `/v1` at its end. */
  readonly baseUrl?: string;
  /** The model's capabilities; default, field by field: known values for its name. */
  readonly capabilities?: Partial<ModelCapabilities>;
}

/**
 * Creates a model for Anthropic's Messages API. Its calls reject with the reason of
 * `context.signal` if that aborts, else only with a `ModelError`. Throws a `TypeError` for an
 * unusable base URL or key.
 */
export function anthropicModel(options: AnthropicModelOptions = {}): Model {
  const { apiKey, apiKeyEnv = 'ANTHROPIC_API_KEY', timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (apiKey === undefined && options.baseUrl === undefined) return withoutKey(apiKeyEnv);
  const baseUrl = toAnthropicUrl(options.baseUrl);
  if (apiKey !== undefined) learnSecrets({ values: [apiKey] });
  const connection = {
    api: anthropicApi,
    place: {
      baseUrl: baseUrl.url,
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
 * Returns true for a model whose name, `claude-…` or `anthropic/claude-…`, means Anthropic's own
 * API. Servers such as OpenRouter use the same names, so OPENAI_BASE_URL without ANTHROPIC_API_KEY
 * means that server.
 */
export function isOwnedByAnthropic(
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const isSet = (variable: string): boolean => (environment[variable]?.trim() ?? '') !== '';
  return isNamedAsAnthropic(name) && (isSet('ANTHROPIC_API_KEY') || !isSet('OPENAI_BASE_URL'));
}

/** The fields by which a config entry specifies a model; see `ModelOptions`. */
interface NamedModel {
  readonly model?: string;
  readonly api?: string;
  readonly baseUrl?: string;
  readonly apiKeyEnv?: string;
}

/**
 * Whether an entry without an `api` means Anthropic's. Throws an `Error` if its name does not
 * determine the provider of its key, because a guess could send the key to another provider.
 */
export function isForAnthropic(
  entryName: string,
  { model = entryName, api, baseUrl, apiKeyEnv }: NamedModel,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  if (api !== undefined || baseUrl !== undefined) return false;
  const isOpenAiSet = (environment['OPENAI_BASE_URL']?.trim() ?? '') !== '';
  if (apiKeyEnv !== undefined && isOpenAiSet && isNamedAsAnthropic(model)) {
    throw new Error(
      `models.${entryName}.api: expected "anthropic", "chat", or "responses", got nothing; the model ` +
        `"${model}" may be at Anthropic or at OPENAI_BASE_URL, and the key in ${apiKeyEnv} must not be sent ` +
        'to the wrong one',
    );
  }
  return isOwnedByAnthropic(model, environment);
}

/** Returns true for a name such as `claude-…` or `anthropic/claude-…`. */
function isNamedAsAnthropic(name: string): boolean {
  return /^(?:anthropic\/|claude-)/.test(name);
}

/** Returns the name at the provider, without `anthropic/`. */
export function toModelName(name: string): string {
  return name.replace(/^anthropic\//, '');
}

function withoutKey(apiKeyEnv: string): Model {
  return uncallableModel(
    ({ model }) =>
      new ModelError(`No key for the model${model && ` "${model}"`}: set ${apiKeyEnv}.`, {
        kind: 'credentials',
        type: 'no_credentials',
      }),
  );
}
