import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { expect, inject, onTestFinished, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import { createServer } from '../../src/http.js';
import { replyText } from '../../src/testing/replies.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from '../support/bundle.js';
import { ownNamespace } from '../support/own-namespace.js';

/** The beginning of every text that a client, a model, or a person says. */
const MARK = 'cnry-said';

test('with encryption on, each interface serves, and the log of the server has no body', async () => {
  const home = await mkdtemp(join(tmpdir(), 'perdure-sealed-'));
  onTestFinished(async () => await rm(home, { recursive: true, force: true }));
  const address = inject('temporalAddress');
  const connection = await Connection.connect({ address });
  onTestFinished(async () => await connection.close());
  const namespace = await ownNamespace(connection);
  const place = {
    address,
    namespace,
    home,
    env: { PERDURE_HOME: home, [KEYS_VARIABLE]: `k1:${randomBytes(32).toString('base64')}` },
  };
  const talker = defineAgent({ name: 'talker', instructions: 'Talk.', model: 'm' });
  const config = defineConfig({
    agents: [talker],
    models: { m: { call: async () => replyText(`${MARK}-reply`) } },
    taskQueue: `sealed-${randomUUID()}`,
  });
  const worker = await createWorker({ ...place, config, workflowBundle: await sourceBundle() });
  const lines: string[] = [];
  const server = await createServer({ ...place, config, log: (line) => void lines.push(line) });
  const ask = async (path: string, body?: unknown): Promise<readonly [number, string]> => {
    const headers = { 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await server.fetch(new Request(`http://127.0.0.1${path}`, sent));
    return [answer.status, await answer.text()];
  };
  const answered = [200, expect.stringContaining(`${MARK}-reply`)];
  const id = randomUUID();
  const run = { agent: 'talker', id, message: `${MARK}-run` };
  const said = { id: 'm1', role: 'user', parts: [{ type: 'text', text: `${MARK}-chat` }] };
  const thread = { threadId: randomUUID(), runId: '1', tools: [], context: [], state: {} };
  const words = [{ id: 'm2', role: 'user', content: `${MARK}-thread` }];
  const response = { model: 'talker', input: `${MARK}-input` };
  const completion = { model: 'talker', messages: [{ role: 'user', content: `${MARK}-content` }] };

  expect((await ask('/v1/runs', run))[0]).toBe(201);
  expect(await ask(`/v1/runs/${id}/events`)).toEqual(answered);
  expect(await ask('/v1/responses', response)).toEqual(answered);
  expect(await ask('/v1/chat/completions', completion)).toEqual(answered);
  expect(await ask('/v1/ui/talker', { id: randomUUID(), messages: [said] })).toEqual(answered);
  expect(await ask('/v1/ag-ui/talker', { ...thread, messages: words })).toEqual(answered);
  // What is refused, and what fails.
  expect((await ask('/v1/runs', { ...run, message: { text: `${MARK}-odd` } }))[0]).toBe(400);
  expect((await ask(`/v1/runs/${id}/messages`, { message: `${MARK}-late` }))[0]).toBe(409);
  await using other = await createServer({
    ...place,
    config,
    env: { ...place.env, [KEYS_VARIABLE]: `k2:${randomBytes(32).toString('base64')}` },
    log: (line) => void lines.push(line),
  });
  const unread = await other.fetch(new Request(`http://127.0.0.1/v1/runs/${id}/transcript`));
  expect(unread.ok).toBe(false);
  await server[Symbol.asyncDispose]();
  await worker.shutdown();
  expect(lines.filter((line) => line.includes(MARK))).toEqual([]);
});
