import {
  checkKey,
  events,
  parseBaseUrl,
  PLACEHOLDER_KEY,
  type BaseUrl,
  type WireClient,
} from '../wire/client.js';
import { wireClientOptions } from '../wire/fetch.js';
import { toProviderFailure } from '../wire/read-error.js';

const ANTHROPIC_URL = 'https://api.anthropic.com/v1';

/**
 * Returns the URL up to `/v1`, which Anthropic's variable omits and OpenAI's includes. Throws a
 * `TypeError` for an unusable URL.
 */
export function toAnthropicUrl(text = ANTHROPIC_URL): BaseUrl {
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
export function createConnect(
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
