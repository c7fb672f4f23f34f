import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { Runtime } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { openClient } from '../../src/client/create-client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { defineConfig } from '../../src/config.js';
import { type EncryptionOptions, KEYS_VARIABLE } from '../../src/encryption/keyring.js';
import { ModelError } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { type RunningWorker, createWorker } from '../../src/worker/create-worker.js';
import { sourceBundle } from '../support/bundle.js';
import { sha256Hex } from '../../src/core/text/json.js';
import { recordRun } from '../../src/recordings/record-run.js';
import { readRecording, writeRecording } from '../../src/recordings/recording-files.js';
import { rerun } from '../../src/recordings/rerun.js';
import { commandLine } from '../support/command.js';

const key = (): string => randomBytes(32).toString('base64');
const [k1, k2] = [key(), key()];
const first: EncryptionOptions = { keys: { k1 }, current: 'k1' };
const rotated: EncryptionOptions = { keys: { k2, k1 }, current: 'k2' };

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: async ({ at }) => `${at}: ${'z'.repeat(200_000)}`,
});
const clerk = defineAgent({ name: 'clerk', instructions: 'Look.', model: 'm', tools: [look] });
const model = {
  async call({ messages }: { readonly messages: readonly { readonly role: string }[] }) {
    const last = messages.at(-1);
    if (JSON.stringify(last).includes('BREAK')) {
      throw new ModelError('no aubergine', { type: 'refused', kind: 'request' });
    }
    return last?.role === 'user' ? replyCall('look', { at: 'aubergine' }) : replyText('done');
  },
};

const cli = await commandLine();
const address = inject('temporalAddress');
let home: string;
let connection: Connection;
const clients: PerdureClient[] = [];
const workers: RunningWorker[] = [];
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'perdure-keys-'));
  connection = await Connection.connect({ address });
});
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.shutdown();
});
afterAll(async () => {
  for (const client of clients) await client.disconnect();
  await connection.close();
  await rm(home, { recursive: true, force: true });
});

async function work(taskQueue: string, encryption?: EncryptionOptions): Promise<RunningWorker> {
  const worker = await createWorker({
    config: defineConfig({
      agents: [clerk],
      models: { m: model },
      ...(encryption && { encryption }),
    }),
    address,
    taskQueue,
    home,
    env: {},
    workflowBundle: await sourceBundle(),
    shutdownGrace: 200,
  });
  workers.push(worker);
  return worker;
}

async function open(taskQueue: string, encryption?: EncryptionOptions): Promise<PerdureClient> {
  const options = { address, home, env: {}, taskQueue, ...(encryption && { encryption }) };
  const client = await openClient(options);
  clients.push(client);
  return client;
}

/** Returns the whole history as the server has it. */
async function storedHistory(id: string): Promise<string> {
  const { events } = await new Client({ connection }).workflow.getHandle(id).fetchHistory();
  const bytes = JSON.stringify(events, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
  );
  return bytes;
}

test('a run goes on with a new key, waits while no worker has its key, and is never read wrongly', async () => {
  const taskQueue = `keys-${randomUUID()}`;
  const id = `keys-${randomUUID()}`;
  const early = await work(taskQueue, first);
  const client = await open(taskQueue, first);
  await client.start('clerk', { id, message: 'look', open: true });
  expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'done' });
  await early.shutdown();

  const keyless = await open(taskQueue);
  for (const method of ['status', 'transcript', 'result'] as const) {
    await expect(keyless[method](id)).rejects.toThrow(
      /"binary\/encrypted" \(key "k1"\); give the key in PERDURE_ENCRYPTION_KEYS/,
    );
  }
  const { rows } = await keyless.list({ idPrefix: id });
  expect(rows).toMatchObject([{ id, unreadable: expect.stringContaining('key "k1"') as string }]);

  const blind = await work(taskQueue);
  const sent = client.send(id, { message: 'again', id: 'second' }).catch((error: unknown) => error);
  await expect
    .poll(async () => await storedHistory(id))
    .toContain('a payload is encrypted with key \\"k1\\", and this worker has no keys');
  await blind.shutdown();
  await work(taskQueue, rotated);
  // The run has the message, although the client cannot read its answer.
  const failed = await sent;
  expect(String(failed)).toMatch(/encrypted with key "k2", and this process has only "k1"/);
  expect(failed).toMatchObject({ mayArrive: true });
  const both = await open(taskQueue, rotated);
  const repeated = await both.send(id, { message: 'again', id: 'second' });
  expect(repeated).toMatchObject({ turn: 2 });
  expect(await both.result(id, { turn: 2 })).toMatchObject({ answer: 'done' });
  const { messages } = await both.transcript(id);
  expect(messages).toHaveLength(8);
  // The client that was not given the new key says so.
  await expect(client.transcript(id)).rejects.toThrow(
    /encrypted with key "k2", and this process has only "k1"/,
  );
});

test('a reader without the key names the run also where only later events are encrypted', async () => {
  const taskQueue = `keys-${randomUUID()}`;
  const id = `keys-${randomUUID()}`;
  const keyless = await open(taskQueue);
  await keyless.start('clerk', { id, message: 'look' });
  await work(taskQueue, first);
  const client = await open(taskQueue, first);
  expect(await client.result(id)).toMatchObject({ answer: 'done' });
  const told = `the history of run "${id}" cannot be read: a payload is encoded as "binary/encrypted" (key "k1"); give the key`;
  for (const method of ['status', 'transcript', 'result'] as const) {
    await expect(keyless[method](id)).rejects.toThrow(told);
  }
  const stranger = await open(taskQueue, { keys: { k2 }, current: 'k2' });
  await expect(stranger.status(id)).rejects.toThrow(
    `the history of run "${id}" cannot be read: a payload cannot be read: it is encrypted with key "k1", and this process has only "k2"`,
  );
  const env = { TEMPORAL_ADDRESS: address, PERDURE_HOME: home, PERDURE_TASK_QUEUE: taskQueue };
  for (const name of ['status', 'attach', 'transcript', 'export', 'record', 'send', 'cancel']) {
    const more = name === 'send' ? ['hello'] : [];
    const { stderr } = await cli.here([name, id, ...more], { env }).ended;
    expect(`${name}: ${stderr}`).toContain(id);
    expect(`${name}: ${stderr}`).toContain('(key "k1")');
  }
});

test('the message of a failure is encrypted, and readers with the key see it', async () => {
  const taskQueue = `keys-${randomUUID()}`;
  const id = `keys-${randomUUID()}`;
  await work(taskQueue, first);
  const client = await open(taskQueue, first);
  await client.start('clerk', { id, message: 'BREAK' });
  const outcome = await client.result(id);
  expect(outcome).toMatchObject({ status: 'failed' });
  expect(outcome.error).toContain('no aubergine');
  const stored = await storedHistory(id);
  expect(stored).not.toContain('aubergine');
  expect(stored).toContain('Encoded failure');
  await client.close(id).catch(() => undefined);
});

test('what is read, exported, and replayed is the same with and without encryption', async () => {
  const read = await Promise.all(
    [first, undefined].map(async (encryption) => {
      const taskQueue = `keys-${randomUUID()}`;
      const id = `keys-${randomUUID()}`;
      await work(taskQueue, encryption);
      const client = await open(taskQueue, encryption);
      await client.start('clerk', { id, message: 'look' });
      const { answer, status, steps } = await client.result(id);
      const { messages } = await client.transcript(id);
      // A reference names what is stored, which is encrypted.
      const told = messages.map(({ role, ...message }) => [
        role,
        'text' in message ? message.text?.replaceAll(/[0-9a-f]{64}/g, '…') : null,
        'calls' in message ? message.calls?.map((call) => call.arguments) : null,
      ]);
      const env = { TEMPORAL_ADDRESS: address, PERDURE_HOME: home };
      const keys = encryption === undefined ? {} : { [KEYS_VARIABLE]: `k1:${k1}` };
      const file = join(home, `${id}.json`);
      const exported = cli.here(['export', id, '--out', file], { env: { ...env, ...keys } });
      const { code, stderr } = await exported.ended;
      expect([code, stderr.includes('It is in clear, although')]).toEqual([
        0,
        encryption !== undefined,
      ]);
      const replayed = await cli.here(['replay', file], { env }).ended;
      expect(replayed).toMatchObject({ code: 0 });
      const json = await readFile(file, 'utf8');
      const isClear = !json.includes(Buffer.from('binary/encrypted').toString('base64'));
      return { answer, status, steps, told, isClear };
    }),
  );
  expect(read[0]).toEqual(read[1]);
  expect(read[0]?.isClear).toBe(true);
});

test('a command without the key names the run that it has started', async () => {
  const taskQueue = `keys-${randomUUID()}`;
  await work(taskQueue, first);
  const env = { TEMPORAL_ADDRESS: address, PERDURE_HOME: home, PERDURE_TASK_QUEUE: taskQueue };
  const id = `keys-${randomUUID()}`;
  const command = cli.here(['run', 'clerk', 'look', '--id', id], { env });
  const { code, stderr } = await command.ended;
  expect(code).toBe(1);
  expect(stderr).toContain(`run ${id} was started, and cannot be read here: `);
  expect(stderr).toContain('key "k1"');
  const client = await open(taskQueue, first);
  expect(await client.result(id)).toMatchObject({ answer: 'done' });
});

test('required: a message and a text that were written without a key are refused, not believed', async () => {
  const taskQueue = `keys-${randomUUID()}`;
  const strict: EncryptionOptions = { ...first, required: true };
  await work(taskQueue, strict);
  const client = await open(taskQueue, strict);
  const id = `keys-${randomUUID()}`;
  await client.start('clerk', { id, message: 'look', open: true });
  expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'done' });
  expect((await client.transcript(id)).messages).toHaveLength(4);
  const plain = await open(taskQueue);
  const forged = `keys-${randomUUID()}`;
  await plain.start('clerk', { id: forged, message: 'look', tags: ['x'] });
  const refused = /is in clear \(json\/plain\), and `encryption.required` refuses it/;
  await expect(client.transcript(forged)).rejects.toThrow(refused);
  await expect
    .poll(async () => await storedHistory(forged))
    .toContain('`encryption.required` refuses it');
  // The server lists a run some time after its start.
  await expect
    .poll(async () => (await client.list({ idPrefix: forged })).rows)
    .toMatchObject([{ unreadable: expect.stringMatching(refused) as string }]);
  await expect(work(taskQueue, { required: true })).rejects.toThrow(/expected keys, because/);
  await new Client({ connection }).workflow.getHandle(forged).terminate();
});

test('a worker with keys that does not start hides nothing in the log afterwards', async () => {
  const config = defineConfig({ agents: [clerk], models: { m: model }, encryption: first });
  const unreachable = { address: '127.0.0.1:1', home, env: {} };
  const workflowBundle = await sourceBundle();
  await expect(createWorker({ config, ...unreachable, workflowBundle })).rejects.toThrow(
    '127.0.0.1:1',
  );
  const write = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  try {
    Runtime.instance().logger.error('the greengrocer says: aubergine');
    await expect.poll(() => String(write.mock.calls)).toContain('the greengrocer says');
    expect(String(write.mock.calls)).toContain('the greengrocer says: aubergine');
  } finally {
    write.mockRestore();
  }
});

test('a run with large texts is recorded, encrypted unless asked otherwise, and executed again', async () => {
  const taskQueue = `keys-${randomUUID()}`;
  const id = `keys-${randomUUID()}`;
  await work(taskQueue, first);
  const client = await open(taskQueue, first);
  await client.start('clerk', { id, message: 'look', artifacts: { crate: { of: 'aubergines' } } });
  expect(await client.result(id)).toMatchObject({ answer: 'done' });
  const file = join(home, `${id}.json`);
  await writeRecording(file, await recordRun(client, id));
  expect(await bytesOf(file)).not.toMatch(/aubergine|zzzz/);
  const withoutKey = readRecording(file, { encryption: { keys: { k2 }, current: 'k2' } });
  await expect(withoutKey).rejects.toThrow(
    `${file}: the recording cannot be read: it is encrypted with key "k1", and this process has only "k2"`,
  );
  const recording = await readRecording(file, { encryption: rotated });
  const large = `aubergine: ${'z'.repeat(200_000)}`;
  const texts = Object.values(recording.blobs);
  expect(texts).toContain(large);
  expect(texts).toContainEqual(expect.stringContaining('aubergines'));
  // The note by which the model reads on has the name of the text, too.
  const messages = recording.runs[0]?.messages.map(({ text }) => text).join('');
  expect(messages).toContain(`{"ref":"${sha256Hex(large)}"`);
  const again = await rerun(recording, { agent: clerk });
  expect(again.divergence?.text ?? null).toBeNull();
  // What was made of an encrypted recording stays encrypted, with the same key.
  const other = join(home, `${id}-again.json`);
  await writeRecording(other, again.recording);
  expect(await bytesOf(other)).not.toMatch(/aubergine|zzzz/);
  await writeRecording(other, { ...recording });
  expect(await readFile(other, 'utf8')).toBe(await readFile(file, 'utf8'));
  await writeRecording(other, recording, { clear: true });
  expect(await bytesOf(other)).toContain(large);
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  expect(plain(await readRecording(other))).toEqual(plain(recording));

  const env = {
    TEMPORAL_ADDRESS: address,
    PERDURE_HOME: home,
    [KEYS_VARIABLE]: `k1:${k1},k2:${k2}`,
  };
  const command = async (...args: string[]) =>
    await cli.here(['record', id, ...args], { env }).ended;
  const out = join(home, `${id}-command.json`);
  const clear = await command('--out', out, '--clear');
  expect(clear).toMatchObject({ code: 0 });
  expect(clear.stderr).toContain('It is in clear, although the run is encrypted');
  expect(await bytesOf(out)).toContain('aubergine');
  const sealed = await command('--out', out, '--json');
  expect(sealed.stderr).toContain('It is encrypted with key "k1": rerun and eval need that key.');
  expect(JSON.parse(sealed.stdout)).toMatchObject({ file: out, key: 'k1' });
  expect(await readFile(out, 'utf8')).toBe(await readFile(file, 'utf8'));
  // Also the large texts of the recording in clear are gone.
  expect(await bytesOf(out)).not.toMatch(/aubergine|zzzz/);
  await command('--out', out, '--key', 'k2');
  expect(JSON.parse(await readFile(out, 'utf8'))).toMatchObject({ key: 'k2' });
  const printed = await command();
  expect(printed.stdout).not.toMatch(/aubergine|zzzz/);
  await writeFile(out, printed.stdout);
  expect(plain(await readRecording(out, { encryption: first }))).toEqual(plain(recording));
  expect(await command('--key', 'k3')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      '--key: expected the id of one of the keys ("k1", "k2"), got "k3"',
    ) as string,
  });
  expect(await command('--key', 'k2', '--clear')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--key: expected no key for a recording in clear') as string,
  });
});

/** Returns what a recording is on disk, with its large texts. */
async function bytesOf(file: string): Promise<string> {
  const folder = file.replace(/\.json$/, '.blobs');
  const names = await readdir(folder);
  const files = [file, ...names.map((name) => join(folder, name))];
  return (await Promise.all(files.map(async (one) => await readFile(one, 'utf8')))).join('\n');
}
