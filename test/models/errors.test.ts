import { expect, test } from 'vitest';
import type { ModelErrorKind } from '../../src/models/model.js';
import { createModelCatalog } from '../../src/models/model-catalog.js';
import { providerError } from '../../src/models/wire/errors.js';
import { replyError } from '../../src/testing/replies.js';
import { callOnce, failureOf, place, stubWith } from './support.js';

function kindOf(status: number | undefined, error: unknown): ModelErrorKind {
  const failure = { headers: new Headers(), error };
  const whole = status === undefined ? failure : { ...failure, status };
  return providerError(whole, place).details.kind;
}

test.each([
  [
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
  ],
  [400, "This endpoint's maximum context length is 131072 tokens."],
  [400, 'Your input exceeds the context window of this model.'],
  [400, 'the request exceeds the available context size, try increasing it'],
  [400, 'Requested tokens (2100) exceed context window of 2048'],
  [400, 'The number of tokens to keep from the initial prompt is greater than the context length'],
  [400, 'prompt is too long: 213462 tokens > 200000 maximum'],
  [400, 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)'],
  [400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens"],
  [400, 'Please reduce the length of the messages or completion.'],
  [422, 'Context size has been exceeded.'],
  [
    500,
    'Trying to keep the first 4000 tokens when the context overflows. However, the model is loaded with context length of only 4096 tokens, longer than the context length',
  ],
  [413, 'anything'],
  [
    429,
    'Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested 45000.',
  ],
])('%i "%s" means that the context is too long', (status, message) => {
  expect(kindOf(status, { message })).toBe('context_too_long');
});

test("reads the upstream's message from a router", () => {
  const raw = '{"error":{"message":"prompt is too long: 5 tokens > 4 maximum"}}';
  const error = { message: 'Provider returned error', code: 400, metadata: { raw } };
  expect(kindOf(400, error)).toBe('context_too_long');
});

test.each<[number | undefined, unknown, ModelErrorKind]>([
  [429, { message: 'Rate limit reached: too many tokens per minute' }, 'retry'],
  [429, { message: 'You exceeded your current quota, retry in 20 s', code: 429 }, 'retry'],
  [429, { type: 'insufficient_quota', code: null }, 'quota'],
  [403, { code: 'billing_not_active' }, 'quota'],
  [400, { message: 'Your credit balance is too low to access the API.' }, 'quota'],
  [402, { message: 'Insufficient Balance' }, 'quota'],
  [400, { message: 'API key not valid. Please pass a valid API key.' }, 'credentials'],
  [401, 'Unauthorized', 'credentials'],
  [403, { message: 'Country not supported' }, 'credentials'],
  [403, { code: 'model_not_found', message: 'Project has no access' }, 'model'],
  [404, { message: 'model "x" not found, try pulling it first' }, 'model'],
  [404, '<html>Not found</html>', 'model'],
  [400, { message: 'invalid model ID' }, 'model'],
  [400, { message: 'The model `x` does not exist.' }, 'model'],
  [400, { message: "Invalid schema for function 'f'" }, 'bad_request'],
  [400, { message: 'The customer wrote: insufficient funds' }, 'bad_request'],
  [422, { detail: 'temperature must be a number' }, 'bad_request'],
  [501, 'no such thing', 'retry'],
  [undefined, { type: 'server_error', message: 'sorry' }, 'retry'],
  [undefined, { type: 'invalid_request_error' }, 'bad_request'],
  [undefined, { code: 401 }, 'credentials'],
  [undefined, 'upstream gone', 'retry'],
  [undefined, null, 'retry'],
])('status %s with %j is of kind %s', (status, error, kind) => {
  expect(kindOf(status, error)).toBe(kind);
});

test.each([
  ['a text', 'words'],
  ['a message', { message: 'words' }],
  ['a detail', { detail: 'words' }],
])('shows the message of an error that is %s', (_name, error) => {
  const { message } = providerError({ status: 418, headers: new Headers(), error }, place);
  expect(message).toBe(
    '418 from http://provider/v1: the request was refused; change the agent or its entry in `models` of the config, ' +
      "or cancel the turn. Provider's message: words",
  );
});

test('reports that a key is required if none was sent', () => {
  const failure = { status: 401, headers: new Headers(), error: undefined };
  const without = providerError(failure, { ...place, hasKey: false });
  expect(without.message).toBe(
    '401 from http://provider/v1: it requires a key; set OPENAI_API_KEY for the worker, or use the model "demo", which needs none',
  );
  expect(providerError(failure, place).message).toContain('the key was refused');
});

test('a refused or missing key names the variable that the model takes its key from', async () => {
  const stub = await stubWith(replyError(401, {}), replyError(401, {}));
  const { baseUrl } = stub;
  const models = { far: { apiKeyEnv: 'FAR_KEY', baseUrl }, own: { apiKeyEnv: 'OWN_KEY' } };
  const call = async (env: Record<string, string>, name: 'far' | 'own' = 'far') =>
    (await failureOf(callOnce(createModelCatalog(models, env).resolve(name).model))).message;
  expect(await call({ FAR_KEY: 'canary-key-far', OPENAI_API_KEY: 'other' })).toMatch(
    /the key was refused; set FAR_KEY for the worker to a valid key/,
  );
  expect(await call({ OPENAI_API_KEY: 'other' })).toMatch(/requires a key; set FAR_KEY/);
  expect(await call({ OPENAI_API_KEY: 'other' }, 'own')).toMatch(/set: set OWN_KEY, or OPENAI_B/);
  expect(() => createModelCatalog(models, { FAR_KEY: 'a key' })).toThrow(/correct FAR_KEY\.$/);
});
