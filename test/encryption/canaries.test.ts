import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { context, propagation } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CBaggagePropagator } from '@opentelemetry/core';
import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openClient } from '../../src/client/create-client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import { startTestServer } from '../../src/server/test-server.js';
import { commandLine } from '../support/command.js';

/** What a run may contain, each under a word that stands nowhere else. */
const PLACES = [
  'message',
  'context',
  'arguments',
  'result',
  'failure',
  'modelerror',
  'errortype',
  'note',
  'by',
  'tag',
  'instructions',
  'childinput',
  'schedule',
  'blob',
  'artifact',
  'baggage',
  'heartbeat',
] as const;
type Place = (typeof PLACES)[number];
const canary = (place: Place): string => `cnry-${place}-7Q2vT9xL`;

const CONFIG = `
import { defineAgent, defineConfig, defineTool } from 'perdure';
import { replyCall, replyText } from 'perdure/testing';
import { ModelError } from 'perdure/models';
import { z } from 'zod';

const on = z.object({ what: z.string() });
const tool = (name, options, execute) =>
  defineTool({ name, description: name, input: on, effect: 'read', ...options, execute });
const tools = [
  tool('pay', { effect: 'keyed', approval: 'always' }, async () => 'paid'),
  tool('look', {}, async () => '${canary('result')}'),
  tool('load', {}, async () => '${canary('blob')}' + 'z'.repeat(400_000)),
  tool('hang', { heartbeat: '30 seconds' }, async (args, { heartbeat }) => {
    heartbeat({ at: '${canary('heartbeat')}' });
    await new Promise(() => undefined);
  }),
  tool('fail', { effect: 'keyed' }, async () => { throw new Error('${canary('failure')}'); }),
];
const model = {
  async call({ messages }) {
    const last = messages.at(-1);
    const text = JSON.stringify(last);
    if (last.role !== 'user') return replyText('done');
    if (text.includes('BREAK')) throw new ModelError('no: ${canary('modelerror')}', { type: '${canary('errortype')}', kind: 'request' });
    const [, name] = /do (\\w+)/.exec(text) ?? [];
    if (name === 'helper') return replyCall('helper', { message: '${canary('childinput')}' });
    return name === undefined ? replyText('hello') : replyCall(name, { what: '${canary('arguments')}' });
  },
};
const helper = defineAgent({ name: 'helper', description: 'helps', instructions: 'Help.', model: 'm' });
const clerk = defineAgent({ name: 'clerk', instructions: '${canary('instructions')}', model: 'm', tools, agents: [helper] });
export default defineConfig({ agents: [clerk, helper], models: { m: model } });
`;

const keys = `k1:${randomBytes(32).toString('base64')}`;
const cli = await commandLine();

beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CBaggagePropagator());
  await writeFile(join(cli.folder, 'perdure.config.mjs'), CONFIG);
});
afterAll(() => {
  context.disable();
  propagation.disable();
});

/** Plants every canary in runs on a server of its own, and returns where they were found on disk. */
async function plant(env: Readonly<Record<string, string>>): Promise<readonly Place[]> {
  await using server = await startTestServer();
  const all = { ...server.env, ...env };
  const worker = cli.start(['worker'], { env: { ...all, PERDURE_DEBUG: '1' } });
  const client = await openClient({ env: all, by: `ann ${canary('by')}` });
  const id = 'desk-1';
  const baggage = propagation.createBaggage({ user: { value: canary('baggage') } });
  await context.with(propagation.setBaggage(context.active(), baggage), async () => {
    await client.start('clerk', {
      id,
      open: true,
      message: `do pay ${canary('message')}`,
      context: { who: canary('context') },
      tags: [canary('tag')],
      artifacts: { orders: { text: canary('artifact') } },
    });
  });
  await expect.poll(async () => (await client.status(id)).pending).toHaveLength(1);
  const [request] = (await client.status(id)).pending;
  await client.resolve(id, {
    request: request?.id ?? '',
    digest: request?.digest ?? '',
    as: 'deny',
    note: canary('note'),
  });
  await client.result(id, { turn: 1 });
  for (const word of ['look', 'load', 'fail', 'helper']) await turn(client, id, `do ${word}`);
  expect(await turn(client, id, 'BREAK')).toContain(canary('modelerror'));
  await client.schedule.create({
    id: 'nightly',
    agent: 'clerk',
    message: canary('schedule'),
    every: '30 days',
  });
  await client.fork(id, { id: 'desk-2', message: 'hello' }).then((run) => client.result(run));
  await client.send(id, 'do hang');
  // The server keeps a heartbeat until the call ends.
  await expect.poll(async () => await heartbeats(server.address, id)).toBeGreaterThan(0);
  const { messages } = await client.transcript(id);
  const read = JSON.stringify(messages);
  expect(PLACES.filter((place) => read.includes(canary(place)))).toEqual(
    expect.arrayContaining([
      'message',
      'arguments',
      'result',
      'failure',
      'note',
      'by',
      'childinput',
    ]),
  );
  await client.disconnect();
  worker.child.kill('SIGKILL');
  const { stderr, stdout } = await worker.ended;
  const stored = await bytesBelow(server.home);
  return PLACES.filter((place) => (stored + stderr + stdout).includes(canary(place)));
}

/** Returns how many calls of the run have a heartbeat on the server. */
async function heartbeats(address: string, id: string): Promise<number> {
  const connection = await Connection.connect({ address });
  const execution = { workflowId: id };
  const request = { namespace: 'default', execution };
  const described = await connection.workflowService.describeWorkflowExecution(request);
  await connection.close();
  return described.pendingActivities.filter((each) => each.heartbeatDetails).length;
}

async function turn(client: PerdureClient, id: string, message: string): Promise<string> {
  const sent = await client.send(id, message);
  if (!('turn' in sent)) throw new Error('the message waits for a worker');
  const outcome = await client.result(id, { turn: sent.turn });
  return JSON.stringify(outcome);
}

async function bytesBelow(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const texts = files.map(
    async (file) => await readFile(join(file.parentPath, file.name), 'latin1'),
  );
  return (await Promise.all(texts)).join('\n');
}

test('with a key, nothing that people, models, or tools say is on disk or in the log', async () => {
  expect(await plant({ [KEYS_VARIABLE]: keys })).toEqual([]);
});

test('without a key, each of them is found, so the other test can fail', async () => {
  expect(await plant({})).toEqual([...PLACES]);
});
