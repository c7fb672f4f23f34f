import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { requiredTsToMs } from '@temporalio/common/lib/time.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { list } from '../../src/cli/commands/list.js';
import { status } from '../../src/cli/commands/status.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createClient } from '../../src/client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { defineConfig } from '../../src/config.js';
import { startTestServer } from '../../src/server/test-server.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from '../support/bundle.js';
import { runInProcess } from '../support/in-process.js';
import { ownCaller } from '../support/own-caller.js';

const server = await startTestServer();
const taskQueue = `tenants-${randomUUID()}`;
let client: PerdureClient;
let connection: Connection;

const note = defineTool({
  name: 'note',
  description: 'Notes.',
  input: z.object({}),
  effect: 'read',
  execute: async () => 'noted',
});
const helper = defineAgent({
  name: 'helper',
  description: 'Helps.',
  instructions: 'x',
  model: 'm',
});
const clerk = defineAgent({
  name: 'clerk',
  instructions: 'x',
  model: 'm',
  tools: [note],
  agents: [helper],
});
const model = {
  async call({ messages }: { readonly messages: readonly object[] }) {
    const text = JSON.stringify(messages.at(-1));
    if (text.includes('ask for help')) return replyCall('helper', { message: 'hello' });
    return text.includes('note it') ? replyCall('note', {}) : replyText('done');
  },
};

beforeAll(async () => {
  client = await createClient({ env: server.env, taskQueue });
  connection = await Connection.connect({ address: server.address });
});
afterAll(async () => {
  await client.disconnect();
  await connection.close();
  await server.close();
});

async function withWorker(work: () => Promise<void>): Promise<void> {
  const worker = await createWorker({
    config: defineConfig({ agents: [clerk, helper], models: { m: model } }),
    env: server.env,
    taskQueue,
    workflowBundle: await sourceBundle(),
  });
  await work().finally(() => worker.shutdown());
}

/** `TENANT_RUNS=500` tries as many as a busy tenant queues; the suite is content with fewer. */
const MANY = Number(process.env['TENANT_RUNS'] ?? 40);
const FEW = 5;

test('many runs of one tenant do not delay a few of another, which waited behind them', async () => {
  const attempt = randomUUID();
  const sdk = new Client({ connection });
  const start = async (tenant: string, index: number) =>
    await client.start('clerk', {
      id: `${tenant}-${index}-${attempt}`,
      message: 'note it',
      tenant,
    });
  const many = await Promise.all(Array.from({ length: MANY }, async (_, i) => start('a', i)));
  const few = await Promise.all(Array.from({ length: FEW }, async (_, i) => start('b', i)));
  /**
   * When the server gave a run to the worker for the first time. The worker then takes all runs at
   * once, so the order of their ends shows how busy it is, and not whose turn it was.
   */
  const begun = async ({ id }: { readonly id: string }): Promise<number> => {
    await client.result(id);
    const { events } = await sdk.workflow.getHandle(id).fetchHistory();
    const first = events?.find((event) => event.workflowTaskStartedEventAttributes);
    return requiredTsToMs(first?.eventTime, 'eventTime');
  };
  /** The tenants for which the server queued the activities of a run. */
  const shares = async ({ id }: { readonly id: string }): Promise<readonly unknown[]> => {
    const { events } = await sdk.workflow.getHandle(id).fetchHistory();
    return (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled ? [scheduled.priority?.fairnessKey] : [],
    );
  };
  await withWorker(async () => {
    const ofMany = await Promise.all(many.map(begun));
    const last = Math.max(...(await Promise.all(few.map(begun))));
    // Without fair shares, all of them would begin first.
    expect(ofMany.filter((time) => time < last).length).toBeLessThanOrEqual(20);
    // A model call, a tool call, and a model call.
    for (const run of few) expect(await shares(run)).toEqual(['b', 'b', 'b']);
  });
});

test('status names the tenant of a run and of the agents that it called, and lists have a column for it', async () => {
  const place = { address: server.address, home: server.env.PERDURE_HOME ?? '', taskQueue };
  const table = async (idPrefix: string): Promise<readonly (readonly string[])[]> => {
    const { stdout } = await runInProcess(list, { max: 50, idPrefix }, place);
    return stdout.split('\n').map((line) => line.split(/ {2,}/));
  };
  await withWorker(async () => {
    const prefix = `shown-${randomUUID()}`;
    await client.result(await client.start('clerk', { id: `${prefix}-plain`, message: 'hello' }));
    const columns = ['ID', 'AGENT', 'STATUS', 'REASON', 'STARTED AT', 'CLOSED AT'];
    expect((await table(prefix))[0]).toEqual(columns);
    const id = `${prefix}-acme`;
    await client.result(
      await client.start('clerk', { id, message: 'ask for help', tenant: 'acme' }),
    );
    const [headers, newest, oldest] = await table(prefix);
    expect(headers).toEqual([...columns, 'TENANT']);
    expect([newest?.at(-1), oldest?.at(-1)]).toEqual(['acme', '-']);
    const { rows } = await client.list({ idPrefix: prefix });
    expect(rows.map(({ tenant }) => tenant)).toEqual(['acme', undefined]);
    const [called] = (await client.list({ root: id })).rows;
    for (const run of [id, called?.id ?? '']) {
      expect((await client.status(run)).tenant).toBe('acme');
      const { stdout } = await runInProcess(status, { id: run }, place);
      expect(stdout).toMatch(/^tenant {4}acme$/m);
    }
    expect(await client.status(`${prefix}-plain`)).not.toHaveProperty('tenant');
  });
});

test('called agents, scheduled runs, and runs that a message starts have the tenant', async () => {
  const sdk = new Client({ connection });
  const tenantOf = async (id: string): Promise<string | undefined> =>
    (await sdk.workflow.getHandle(id).describe()).priority?.fairnessKey;
  await withWorker(async () => {
    const { id } = await client.start('clerk', { message: 'ask for help', tenant: 'acme' });
    await client.result(id);
    const called = async () => (await client.list({ root: id })).rows;
    await expect.poll(called).toHaveLength(1);
    for (const row of [{ id }, ...(await called())]) expect(await tenantOf(row.id)).toBe('acme');
    const chat = `chat-${randomUUID()}`;
    await client.send(chat, 'hello', { start: { agent: 'clerk', tenant: 'acme' } });
    expect(await tenantOf(chat)).toBe('acme');
    const plain = await client.start('clerk', { message: 'hello' });
    expect((await tenantOf(plain.id)) ?? '').toBe('');
  });
  const id = `nightly-${randomUUID()}`;
  await client.schedule.create({
    id,
    agent: 'clerk',
    message: 'hello',
    every: '30 days',
    tenant: 'acme',
  });
  const { action } = await sdk.schedule.getHandle(id).describe();
  expect(action).toMatchObject({ priority: { fairnessKey: 'acme' }, memo: { tenant: 'acme' } });
});

test.each([
  ['empty', ' ', /tenant: expected a text of 1 to 64 bytes, got " "; use a short id/],
  ['too long', 'é'.repeat(33), /tenant: expected a text of 1 to 64 bytes/],
  ['a number', 7, /tenant: expected a text of 1 to 64 bytes, got 7/],
])('a tenant that is %s is refused before the start', async (_, tenant, message) => {
  const start = client.start('clerk', { message: 'hello', tenant: tenant as string });
  await expect(start).rejects.toThrow(message);
});

test('a run that a workflow of your own starts for a tenant has its share, and lists name it', async () => {
  const sdk = new Client({ connection });
  const input = { agent: 'clerk', message: 'ask for help', tenant: 'acme' };
  await withWorker(async () => {
    const { runs } = await ownCaller({ client: sdk, address: server.address, taskQueue }, input);
    for (const id of runs) {
      expect((await sdk.workflow.getHandle(id).describe()).priority?.fairnessKey).toBe('acme');
      const [row] = (await client.list({ idPrefix: id })).rows;
      expect(row).toMatchObject({ id, tenant: 'acme' });
    }
  });
});
