import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createClient, defineConfig, type PerdureClient } from '../../src/index.js';
import { replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';

const address = inject('temporalAddress');
let rig: Rig;
let client: PerdureClient;

beforeAll(async () => {
  rig = await createMemoryRig();
  const agent = defineAgent({ name: 'a', instructions: 'x', model: 'm' });
  await rig.worker([agent], { models: { m: scriptedModel([replyText('one')]) } });
  const { client: sdk, taskQueue, home } = rig;
  client = await createClient({ client: sdk, taskQueue, home, by: 'web session: ann' });
});
afterAll(async () => await rig.close());

test('the result of an open run that was canceled while it waited is cancelled, at once and later', async () => {
  const run = await client.start('a', { message: 'hi', open: true });
  expect(await client.result(run)).toMatchObject({ status: 'completed', answer: 'one' });
  await client.cancel(run);
  const cancelled = { status: 'cancelled', reason: 'cancelled' };
  expect(await client.result(run)).toMatchObject(cancelled);
  expect(await client.result(run)).toMatchObject(cancelled);
  expect(await client.result(run, { turn: 1 })).toMatchObject({ status: 'completed' });
  expect((await client.status(run)).cancel).toMatchObject({ by: 'web session: ann' });
});

test('a result that the history no longer has is lost, by an error with a code', async () => {
  const run = await client.start('a', { message: 'hi' });
  await client.result(run);
  // The server answers the question for the last event with none.
  const service = Object.create(rig.client.workflowService, {
    getWorkflowExecutionHistory: {
      value: async (request: { readonly historyEventFilterType?: number }) =>
        request.historyEventFilterType === undefined
          ? await rig.client.workflowService.getWorkflowExecutionHistory(request)
          : { history: { events: [] } },
    },
  });
  const sdk = Object.create(rig.client, { workflowService: { value: service } });
  await using forgetful = await createClient({ client: sdk, home: rig.home });
  await expect(forgetful.result(run)).rejects.toMatchObject({ code: 'result_lost' });
});

test('a client without a configuration says so, if its run finds no worker', async () => {
  const warnings: string[] = [];
  const listener = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', listener);
  const sdk = new Client({ connection: await Connection.connect({ address }) });
  await using unnamed = await createClient({ client: sdk, home: rig.home, env: {} });
  const run = await unnamed.start('a', 'hi');
  const over = new AbortController();
  const result = unnamed.result(run, { signal: over.signal });
  await expect
    .poll(() => warnings.join(), { timeout: 4_000 })
    .toContain(
      'no worker serves task queue "perdure"; pass the configuration, createClient({ config })',
    );
  over.abort();
  await expect(result).rejects.toThrow(/abort/);
  await unnamed.cancel(run);
  process.off('warning', listener);
  await sdk.connection.close();
});

/** Waits for two runs of a queue without a worker, and returns what was warned about it. */
async function warningsOf(lonely: PerdureClient, taskQueue: string): Promise<readonly string[]> {
  const warnings: string[] = [];
  const listener = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', listener);
  const runs = [await lonely.start('a', 'hi'), await lonely.start('a', 'hi')];
  const over = new AbortController();
  const results = runs.map((run) => lonely.result(run, { signal: over.signal }));
  await expect.poll(() => warnings.join()).toContain(`no worker serves task queue "${taskQueue}"`);
  over.abort();
  await Promise.allSettled(results);
  for (const run of runs) await lonely.cancel(run);
  process.off('warning', listener);
  return warnings.filter((one) => one.includes(taskQueue));
}

test('waiting for a run that no worker takes is a warning, once for the task queue, with the place of the client', async () => {
  const taskQueue = `nobody-${randomUUID()}`;
  const sdk = new Client({ connection: await Connection.connect({ address }) });
  await using lonely = await createClient({ client: sdk, taskQueue, home: rig.home });
  const warnings = await warningsOf(lonely, taskQueue);
  expect(warnings).toEqual([
    expect.stringMatching(
      new RegExp(
        `; start one, for example with: PERDURE_HOME=${rig.home} npx perdure worker --task-queue ${taskQueue} --address ${address}$`,
      ),
    ),
  ]);
  await sdk.connection.close();
});

test('in a test, the warning about a run without a worker names createWorker, with the queue if it is not that of the configuration', async () => {
  const home = join(tmpdir(), `perdure-test-${randomUUID()}`);
  const [own, other] = [`nobody-${randomUUID()}`, `nobody-${randomUUID()}`];
  const agents = [defineAgent({ name: 'a', instructions: 'x', model: 'm' })];
  const config = defineConfig({ agents, taskQueue: own });
  await using lonely = await createClient({ config, address, home });
  await using elsewhere = await createClient({ config, address, home, taskQueue: other });
  const [warned, warnedElsewhere] = await Promise.all([
    warningsOf(lonely, own),
    warningsOf(elsewhere, other),
  ]);
  const create = 'in a test, create one: await createWorker';
  expect(warned).toEqual([expect.stringContaining(`${create}({ config, address, home })`)]);
  expect(warnedElsewhere).toEqual([
    expect.stringContaining(`${create}({ config, taskQueue: "${other}", address, home })`),
  ]);
});
