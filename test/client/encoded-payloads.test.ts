import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { createClient } from '../../src/index.js';
import { UnreadableError } from '../../src/core/errors.js';
import { historyToJson } from '../../src/history/history-event.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { ModelError } from '../../src/models/model.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { replayHistory } from '../../src/worker/bundle.js';
import { perdurePlugin } from '../../src/worker/plugin.js';
import { sourceBundle } from '../support/bundle.js';
import { commandLine } from '../support/command.js';
import { encryptingCodec } from '../support/payload-codec.js';
import { createRig, type Rig } from '../support/rig.js';

const CANARY = 'aubergine';
const dataConverter = { payloadCodecs: [encryptingCodec('k1', Buffer.alloc(32, 7))] };
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string() }),
  effect: 'keyed',
  approval: 'always',
  execute: async () => `paid ${CANARY}`,
});
const clerk = defineAgent({ name: 'clerk', instructions: CANARY, model: 'm', tools: [pay] });
const model = {
  async call({ messages }: { readonly messages: readonly { readonly role: string }[] }) {
    if (JSON.stringify(messages.at(-1)).includes('BREAK')) {
      throw new ModelError(`no ${CANARY}`, { type: 'refused', kind: 'request' });
    }
    const isFirst = messages.at(-1)?.role === 'user';
    return isFirst ? replyCall('pay', { to: CANARY }) : replyText(`done ${CANARY}`);
  },
};

let rig: Rig;
let encrypted: PerdureClient;
let plain: PerdureClient;
let sdk: Client;
const closing: (() => Promise<unknown>)[] = [];
const env = { PERDURE_HOME: '' };
const encodedQueue = `encoded-${randomUUID()}`;
const id = `codec-${randomUUID()}`;

beforeAll(async () => {
  rig = await createRig();
  rig.exempt('the oracle of this file reads without the codec');
  env.PERDURE_HOME = rig.home;
  const address = inject('temporalAddress');
  const connection = await NativeConnection.connect({ address });
  const bundle = await sourceBundle();
  const worker = await Worker.create({
    connection,
    taskQueue: encodedQueue,
    workflowBundle: bundle,
    dataConverter,
    plugins: [
      perdurePlugin({
        agents: [clerk],
        models: { m: model },
        env,
        segment: { steps: 3, bytes: 2_000_000 },
      }),
    ],
  });
  const running = worker.run();
  await rig.worker([clerk], { models: { m: model } });
  const clientConnection = await Connection.connect({ address });
  sdk = new Client({ connection: clientConnection, dataConverter });
  encrypted = await createClient({ client: sdk, taskQueue: encodedQueue, home: rig.home });
  plain = await createClient({
    client: new Client({ connection: clientConnection }),
    taskQueue: rig.taskQueue,
    home: rig.home,
  });
  closing.push(async () => {
    worker.shutdown();
    await running;
    await connection.close();
    await clientConnection.close();
  });
});
afterAll(async () => {
  for (const close of closing) await close();
  await rig.close();
});

describe('under a codec of the user', () => {
  test('a run is read as without one, in every segment', async () => {
    await encrypted.start('clerk', { id, message: `pay ${CANARY}`, open: true, tags: [CANARY] });
    const requests = async () => (await encrypted.requests({ run: id })).requests;
    await expect.poll(requests).toHaveLength(1);
    const [open] = await requests();
    const request = await encrypted.request(id, open?.id ?? '');
    expect(request.arguments).toBe(JSON.stringify({ to: CANARY }));
    await encrypted.resolve(id, { request: request.id, digest: request.digest, as: 'approve' });
    expect(await encrypted.result(id, { turn: 1 })).toMatchObject({ answer: `done ${CANARY}` });
    const { rows } = await encrypted.list({ tag: CANARY, idPrefix: id });
    expect(rows).toMatchObject([{ id, tags: [CANARY] }]);
    expect(rows[0]).not.toHaveProperty('unreadable');
    await encrypted.send(id, 'again');
    await expect.poll(async () => (await encrypted.status(id)).status).toBe('waiting_decision');
    const [again] = (await encrypted.status(id)).pending;
    await encrypted.resolve(id, {
      request: again?.id ?? '',
      digest: again?.digest ?? '',
      as: 'deny',
      note: 'no',
    });
    expect(await encrypted.result(id, { turn: 2 })).toMatchObject({ status: 'completed' });
    const { messages } = await encrypted.transcript(id);
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
      'tool',
      'assistant',
    ]);
    const { segments, turn: last } = await encrypted.status(id);
    expect({ last, isContinued: segments > 1 }).toEqual({ last: 2, isContinued: true });
  });

  test('a failure has its message', async () => {
    const failing = `${id}-failing`;
    await encrypted.start('clerk', { id: failing, message: 'BREAK' });
    const outcome = await encrypted.result(failing);
    expect(outcome).toMatchObject({ status: 'failed' });
    expect(outcome.error).toContain(`no ${CANARY}`);
  });

  test('the archive has no more than the server', async () => {
    const folder = join(rig.home, 'archive');
    const files = await readdir(folder, { recursive: true, withFileTypes: true });
    const texts = await Promise.all(
      files
        .filter((file) => file.isFile())
        .map((file) => readFile(join(file.parentPath, file.name), 'utf8')),
    );
    expect(texts.join('')).toContain('encryption-key-id');
    expect(texts.join('')).not.toContain(CANARY);
    expect(texts.join('')).not.toContain(Buffer.from(CANARY).toString('base64'));
  });

  test('an encoded history is not called nondeterministic', async () => {
    const history = await sdk.workflow.getHandle(`${id}-failing`).fetchHistory();
    expect(await replayHistory(historyToJson(history))).toEqual({
      type: 'no_history',
      reason:
        'its payloads are encoded as "binary/encrypted" (key "k1"); decode them before they are replayed',
    });
  });
});

describe('without the codec', () => {
  const why =
    /is encoded as "binary\/encrypted" \(key "k1"\); give the key in PERDURE_ENCRYPTION_KEYS or `encryption` of the configuration, or use a client with the payload codec/;

  test.each([
    ['status', async () => await plain.status(id)],
    ['result', async () => await plain.result(id)],
    ['transcript', async () => await plain.transcript(id)],
    ['turns', async () => await plain.turns(id)],
    ['request', async () => await plain.request(id, 'r1')],
  ])('%s says what is encoded', async (_name, read) => {
    const error: unknown = await read().then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(UnreadableError);
    expect(String(error)).toMatch(why);
  });

  test('a list says so per row, and reads the other rows', async () => {
    const other = `${id}-other`;
    await plain.start('clerk', { id: other, message: 'x', tags: ['plain'] });
    await expect.poll(async () => (await plain.requests({ run: other })).requests).toHaveLength(1);
    await encrypted.start('clerk', { id: `${id}-waiting`, message: 'x' });
    const rowOf = async (run: string) =>
      (await plain.list({ idPrefix: id })).rows.find((row) => row.id === run);
    await expect.poll(async () => (await rowOf(`${id}-waiting`))?.status).toBe('waiting_decision');
    expect(await rowOf(`${id}-waiting`)).toMatchObject({
      agent: 'clerk',
      status: 'waiting_decision',
      unreadable: expect.stringMatching(/^its memo cannot be read: it is encoded as/),
    });
    expect(await rowOf(other)).toEqual(expect.not.objectContaining({ unreadable: '' }));
    const found = await plain.requests({});
    expect(found.requests.map(({ run }) => run)).toContain(other);
    expect(found.unreadable).toEqual(
      expect.arrayContaining([
        { run: `${id}-waiting`, why: expect.stringMatching(/memo cannot be read/) },
      ]),
    );
    await plain.cancel(other);
    await encrypted.cancel(`${id}-waiting`);
  });

  test('schedules of perdure are listed, and those of other programs ignored', async () => {
    const [own, foreign] = [`own-${id}`, `foreign-${id}`];
    await encrypted.schedule.create({ id: own, agent: 'clerk', message: 'x', every: '9 hours' });
    await sdk.schedule.create({
      scheduleId: foreign,
      spec: { intervals: [{ every: '9 hours' }] },
      action: { type: 'startWorkflow', workflowType: 'x', taskQueue: 'x', args: [] },
      memo: { secret: CANARY },
    });
    const unreadable = expect.stringMatching(/encoded as "binary\/encrypted"/);
    await expect
      .poll(async () => (await plain.schedule.list()).filter((row) => row.id.endsWith(id)))
      .toEqual([expect.objectContaining({ id: own, agent: null, unreadable })]);
    const rows = await encrypted.schedule.list();
    expect(rows.find((row) => row.id === own)).toMatchObject({ agent: 'clerk' });
    await encrypted.schedule.delete(own);
    await sdk.schedule.getHandle(foreign).delete();
  });

  test('the commands list what they can read, and say what they cannot', async () => {
    await encrypted.start('clerk', { id: `${id}-shown`, message: 'x' });
    await expect
      .poll(async () => (await encrypted.requests({ run: `${id}-shown` })).requests)
      .toHaveLength(1);
    const options = ['--address', inject('temporalAddress'), '--task-queue', rig.taskQueue];
    const cli = await commandLine();
    const run = async (...args: string[]) => await cli.here([...args, ...options], { env }).ended;
    const inbox = await run('inbox');
    expect(inbox.stderr).toMatch(
      `Run ${id}-shown may wait for a decision: its memo cannot be read`,
    );
    const list = await run('list', '--id-prefix', `${id}-shown`);
    expect(list.stdout).toMatch('waiting_decision');
    expect(list.stderr).toMatch(`Run ${id}-shown: its memo cannot be read`);
    await encrypted.cancel(`${id}-shown`);
  });
});
