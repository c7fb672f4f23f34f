import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openClient } from '../../src/client/create-client.js';
import { defineConfig } from '../../src/config.js';
import type { EncryptionOptions } from '../../src/encryption/keyring.js';
import type { Model } from '../../src/models/model.js';
import { startTestServer } from '../../src/server/test-server.js';
import { replyText } from '../../src/testing/replies.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from '../support/bundle.js';

const key = (): string => randomBytes(32).toString('base64');
const encryption: EncryptionOptions = {
  keys: { shared: key(), kA: key(), kB: key() },
  current: 'shared',
  tenants: { a: 'kA', b: 'kB' },
};

test('a worker does not decrypt a payload of one tenant in a run of another', async () => {
  const prompts: string[] = [];
  const model: Model = {
    async call({ messages }) {
      prompts.push(JSON.stringify(messages));
      return replyText('hello');
    },
  };
  const clerk = defineAgent({ name: 'clerk', instructions: 'Help.', model: 'm' });
  await using server = await startTestServer();
  const { address, home } = server;
  const worker = await createWorker({
    config: defineConfig({ agents: [clerk], models: { m: model }, encryption }),
    address,
    home,
    env: {},
    workflowBundle: await sourceBundle(),
    shutdownGrace: 200,
  });
  const client = await openClient({ address, home, env: {}, encryption });
  const connection = await Connection.connect({ address });
  const raw = new Client({ connection });
  const eventsOf = async (id: string) =>
    (await raw.workflow.getHandle(id).fetchHistory()).events ?? [];
  const source = await client.start('clerk', { tenant: 'a', open: true, message: 'hello' });
  await client.send(source, 'the secret of a');
  await client.result(source, { turn: 2 });
  const asks = (await eventsOf(source.id)).flatMap((event) => {
    const request = event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest;
    return request?.input?.name === 'ask' ? (request.input.args?.payloads ?? []) : [];
  });
  expect(asks.map(({ metadata }) => String(metadata?.['encryption-key-id']))).toEqual(['kA']);
  for (const given of [{ id: 'b/target', tenant: 'b' }, { id: 'target' }]) {
    const { id } = given;
    await client.start('clerk', { ...given, open: true, message: 'hello' });
    await client.result(id, { turn: 1 });
    prompts.length = 0;
    await raw.workflowService.signalWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: id },
      signalName: 'message',
      input: { payloads: asks },
    });
    const hasFailed = async (): Promise<boolean> =>
      prompts.length > 0 ||
      (await eventsOf(id)).some((event) => event.workflowTaskFailedEventAttributes);
    await expect.poll(hasFailed, { timeout: 20_000 }).toBe(true);
    expect(prompts).toEqual([]);
    await expect(client.transcript(id)).rejects.toThrow(
      `encrypted with key "kA" of tenant "a", and "${id}" is not of that tenant`,
    );
    await raw.workflow.getHandle(id).terminate();
  }
  await worker.shutdown();
  await client.disconnect();
  await connection.close();
});
