import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openClient } from '../../src/client/create-client.js';
import { defineConfig } from '../../src/config.js';
import type { EncryptionOptions } from '../../src/encryption/keyring.js';
import type { Model } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { type RunningWorker, createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from '../support/bundle.js';

const key = (): string => randomBytes(32).toString('base64');
const mine: EncryptionOptions = { keys: { k1: key() }, current: 'k1' };
const other: EncryptionOptions = { keys: { k2: key() }, current: 'k2' };
const address = inject('temporalAddress');

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'perdure-other-key-'));
});
afterAll(async () => {
  await rm(home, { recursive: true, force: true });
});

const clerk = defineAgent({ name: 'clerk', instructions: 'x', model: 'm' });

async function work(
  taskQueue: string,
  model: Model,
  rest: { readonly encryption?: EncryptionOptions; readonly workflows?: boolean },
): Promise<RunningWorker> {
  const { encryption, workflows = true } = rest;
  const config = defineConfig({
    agents: [clerk],
    models: { m: model },
    ...(encryption && { encryption }),
  });
  const workflowBundle = await sourceBundle();
  const place = { address, home, env: {}, taskQueue, workflowBundle, shutdownGrace: 100 };
  return await createWorker({ config, ...place, workflows });
}

test.each([
  ['without keys', undefined],
  ['with another key', other],
])(
  'a worker %s that gets an activity with a heartbeat says once which key it lacks',
  async (_, encryption) => {
    const taskQueue = `other-${randomUUID()}`;
    const id = `other-${randomUUID()}`;
    let beat = (): void => undefined;
    const beaten = new Promise<void>((resolve) => (beat = resolve));
    const first = await work(
      taskQueue,
      {
        async call(_request, { signal }) {
          Context.current().heartbeat({ at: 'aubergine' });
          beat();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          signal.throwIfAborted();
          return replyText('never');
        },
      },
      { encryption: mine },
    );
    const client = await openClient({ address, home, env: {}, taskQueue, encryption: mine });
    await client.start('clerk', { id, message: 'look' });
    await beaten;
    const connection = await Connection.connect({ address });
    const handle = new Client({ connection }).workflow.getHandle(id);
    const pending = async () => (await handle.describe()).raw.pendingActivities?.[0];
    await expect.poll(async () => (await pending())?.heartbeatDetails?.payloads?.length).toBe(1);
    await first.shutdown();

    const write = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
    const logged = (): string => write.mock.calls.map(([text]) => String(text)).join('');
    const said =
      'a worker with key "k1" began this activity, and this worker does not have the key';
    const answers = { call: async () => replyText('done') };
    const rest = { ...(encryption && { encryption }), workflows: false };
    const blind = await work(taskQueue, answers, rest);
    try {
      const attempt = async () => (await pending())?.attempt;
      await expect.poll(attempt, { timeout: 30_000 }).toBeGreaterThan(3);
      await blind.shutdown();
      await expect.poll(logged).toContain(said);
      expect(logged().split(said)).toHaveLength(2);
      expect(logged()).toContain(id);
      expect(logged()).toContain('add the key to PERDURE_ENCRYPTION_KEYS');
      expect(logged()).not.toContain('Failed to parse');
    } finally {
      write.mockRestore();
    }
    await handle.terminate();
    await client.disconnect();
    await connection.close();
  },
  60_000,
);
