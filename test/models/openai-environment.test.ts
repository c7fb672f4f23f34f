import { createServer } from 'node:http';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { type LocalServer, findLocalServer, LOCAL_SERVERS } from '../../src/models/known-models.js';
import { openAiModelFromEnvironment } from '../../src/models/openai/model.js';
import { replyError, replyText } from '../../src/testing/replies.js';
import { callOnce, failureOf, stubWith } from './support.js';

function portOf(baseUrl: string): number {
  return Number(new URL(baseUrl).port);
}

/** Starts a server that gives every request this answer, or none. */
async function otherServer(answer: string | null): Promise<number> {
  const server = createServer((_request, response) => {
    if (answer !== null) response.end(answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

test('makes no request without key and address, and names both', async () => {
  const model = openAiModelFromEnvironment({ OPENAI_API_KEY: ' ' }, { localServers: [] });
  const { details, message } = await failureOf(callOnce(model));
  expect(details).toEqual({ kind: 'credentials', type: 'no_credentials' });
  expect(message).toBe(
    "No model provider is set: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that speaks OpenAI's API.",
  );
});

test('names the local server that answers, with the variable to set', async () => {
  const stub = await stubWith();
  const closed = await stubWith();
  await closed.close();
  const localServers: LocalServer[] = [
    { name: 'Nobody', port: portOf(closed.baseUrl) },
    { name: 'A page', port: await otherServer('<html>') },
    { name: 'Some JSON', port: await otherServer('{"status":"up"}') },
    { name: 'Silence', port: await otherServer(null) },
    { name: 'Ollama', port: portOf(stub.baseUrl) },
  ];
  const model = openAiModelFromEnvironment({}, { localServers });
  const { message } = await failureOf(callOnce(model));
  expect(message).toMatch(
    new RegExp(`Ollama answers here: OPENAI_BASE_URL=http://127.0.0.1:${portOf(stub.baseUrl)}/v1$`),
  );
  expect(stub.requestCount).toBe(0);
});

test('probes the usual ports', () => {
  expect(LOCAL_SERVERS.map(({ name, port }) => `${name} ${port}`)).toEqual([
    'Ollama 11434',
    'llama.cpp 8080',
    'LM Studio 1234',
    'vLLM 8000',
  ]);
});

test('finds nothing if no server listens', async () => {
  expect(await findLocalServer([])).toBeNull();
});

test('sends a placeholder with a base URL but no key', async () => {
  const stub = await stubWith(replyText('ok'), replyError(401, {}));
  const model = openAiModelFromEnvironment({ OPENAI_BASE_URL: stub.baseUrl });
  expect(await callOnce(model)).toMatchObject({ text: 'ok' });
  expect(stub.requests[0]?.headers.authorization).toBe('Bearer none');
  expect((await failureOf(callOnce(model))).message).toContain('it requires a key');
});

test('takes key and base URL from the given environment, not from the process', async () => {
  const stub = await stubWith(replyText('ok'));
  process.env['OPENAI_BASE_URL'] = 'http://127.0.0.1:9/v1';
  process.env['OPENAI_ADMIN_KEY'] = 'admin-key';
  onTestFinished(() => {
    delete process.env['OPENAI_BASE_URL'];
    delete process.env['OPENAI_ADMIN_KEY'];
  });
  const environment = { OPENAI_BASE_URL: ` ${stub.baseUrl}\n`, OPENAI_API_KEY: 'given-key\n' };
  await callOnce(openAiModelFromEnvironment(environment));
  expect(stub.requests[0]?.headers.authorization).toBe('Bearer given-key');
});

test('rejects with the reason of a signal that has aborted, also without a provider', async () => {
  const model = openAiModelFromEnvironment({}, { localServers: [] });
  await expect(callOnce(model, AbortSignal.abort('stop'))).rejects.toBe('stop');
});
