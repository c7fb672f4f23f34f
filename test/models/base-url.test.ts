import { expect, onTestFinished, test } from 'vitest';
import { createModelCatalog } from '../../src/models/model-catalog.js';
import type { ModelEntry } from '../../src/models/model-entry.js';
import { parseBaseUrl } from '../../src/models/wire/client.js';
import { redact } from '../../src/secrets/redact.js';
import { httpServer } from '../support/http-server.js';
import { callOnce, failureOf } from './support.js';

test.each([
  ['http://p/v1', 'http://p/v1', ''],
  ['http://p/v1///', 'http://p/v1', ''],
  ['http://p', 'http://p', ''],
  ['http://p/?a=1', 'http://p', '?a=1'],
  ['http://p/v1/chat/completions', 'http://p/v1', ''],
  ['http://p/v1/chat/completions/?a=b%20c&a=2', 'http://p/v1', '?a=b%20c&a=2'],
  ['http://p/v1/responses', 'http://p/v1', ''],
  ['http://p/v1/messages', 'http://p/v1', ''],
  ['http://p/v1#part', 'http://p/v1', ''],
  [
    'http://p/openai/deployments/d?api-version=1',
    'http://p/openai/deployments/d',
    '?api-version=1',
  ],
])('%s is the address %s with the query "%s"', (text, url, search) => {
  expect(parseBaseUrl(text)).toEqual({ url, search });
});

test('a secret in a query is learned, and an ordinary value is not', () => {
  parseBaseUrl('http://p/v1?api_key=canary-query-1&sig=canary-query-2&plan=ordinary-value');
  expect(redact('canary-query-1 canary-query-2 ordinary-value')).toMatch(
    /^\S*\[[^\]]*\].*ordinary-value$/,
  );
  expect(redact('canary-query-2')).not.toContain('canary');
});

/** Starts a server that records the URL and the keys of each request. */
async function recordingServer() {
  const requests: { url: string; keys: unknown[] }[] = [];
  const server = await httpServer((request, response) => {
    const { authorization, 'api-key': azure, 'x-api-key': anthropic } = request.headers;
    requests.push({ url: request.url ?? '', keys: [authorization, azure, anthropic] });
    response.writeHead(418, { 'content-type': 'application/json' }).end('{}');
  });
  onTestFinished(() => server.close());
  return { url: server.url, requests };
}

const QUERY = '?api-version=2024-10-21&x=a%20b&x=2';
const env = { OPENAI_API_KEY: 'canary-key-1', ANTHROPIC_API_KEY: 'canary-key-2' };

test.each<[string, ModelEntry, string]>([
  ['Chat Completions', {}, '/d1/chat/completions'],
  ['Responses', { api: 'responses' }, '/d1/responses'],
  ['Messages', { api: 'anthropic' }, '/d1/v1/messages'],
])('the query of a base URL follows the path of %s', async (_name, entry, path) => {
  const { url, requests } = await recordingServer();
  const models = { m: { ...entry, baseUrl: `${url}/d1/${QUERY}` } };
  const { model } = createModelCatalog(models, env).resolve('m');
  const { message } = await failureOf(callOnce(model));
  expect(requests.map((request) => request.url)).toEqual([path + QUERY]);
  expect(message).not.toContain('api-version');
});

test.each<[string, string, string]>([
  ['gpt-4o', 'OPENAI_BASE_URL', '/d1/chat/completions'],
  ['claude-x', 'ANTHROPIC_BASE_URL', '/d1/v1/messages'],
])('so does the query in the variable of %s', async (name, variable, path) => {
  const { url, requests } = await recordingServer();
  const { model } = createModelCatalog({}, { ...env, [variable]: `${url}/d1${QUERY}` }).resolve(
    name,
  );
  await failureOf(callOnce(model));
  expect(requests.map((request) => request.url)).toEqual([path + QUERY]);
});

test('an address of Azure gets the key in the header that it reads', async () => {
  const { url, requests } = await recordingServer();
  const models = { azure: { baseUrl: `${url}/d1${QUERY}` }, other: { baseUrl: `${url}/d1` } };
  const catalog = createModelCatalog(models, env);
  await failureOf(callOnce(catalog.resolve('azure').model));
  await failureOf(callOnce(catalog.resolve('other').model));
  const bearer = 'Bearer canary-key-1';
  expect(requests.map(({ keys }) => keys)).toEqual([
    [bearer, 'canary-key-1', undefined],
    [bearer, undefined, undefined],
  ]);
});
