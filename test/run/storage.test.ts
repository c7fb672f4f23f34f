import { createHash, randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import {
  ArchiveError,
  type Archive,
  BlobError,
  type BlobStore,
} from '../../src/storage/blob-store.js';
import { ownedText } from '../../src/storage/owned-text.js';
import { readRun } from '../../src/history/read-run.js';
import { toRunStatus } from '../../src/client/status.js';
import type { RunInput } from '../../src/core/input/input.js';
import type { RunStatus } from '../../src/core/state/status.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { artifact } from '../../src/tools/built-in/artifact.js';
import { defaultTools } from '../../src/tools/built-in/default-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clerk, clientOf } from '../support/clerk.js';
import { replyTo } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Ended, Rig } from '../support/rig.js';

/**
 * The store's reaction to texts that contain a certain word: `full` refuses them, the rest are
 * unreadable.
 */
type Fault = 'full' | 'down' | 'missing' | 'damaged';
const faults = new Map<string, Fault>();
const texts = new Map<string, string>();
const faultOf = (text: string): Fault | undefined =>
  [...faults].find(([word]) => text.includes(word))?.[1];

/** A driver that does not verify what it reads, as one for a remote store may not. */
const store: BlobStore = {
  async put(text) {
    if (faultOf(text) === 'full') throw new BlobError('the disk is full', { kind: 'unwritable' });
    const sha256 = createHash('sha256').update(text).digest('hex');
    texts.set(sha256, text);
    return { sha256, bytes: Buffer.byteLength(text) };
  },
  async get({ sha256 }) {
    const text = texts.get(sha256);
    const fault = text === undefined ? 'missing' : faultOf(text);
    if (fault === 'missing') throw new BlobError(`blob ${sha256} is missing`, { kind: 'missing' });
    if (fault === 'down') throw new Error('connect ECONNREFUSED');
    return `${text}${fault === 'damaged' ? '?' : ''}`;
  },
};

let archiveIsDown = false;
const archive: Archive = {
  async write() {
    if (archiveIsDown) throw new ArchiveError('the disk is full', { kind: 'unwritable' });
  },
  list: async () => [],
  read: async () => '',
};

let paid = 0;
const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ note: z.string() }),
  effect: 'once',
  execute: async ({ note }, { artifacts }) => {
    paid += 1;
    const named = artifacts.names.length > 0 ? await artifacts.get(note) : '';
    return `paid for ${note.length + String(named).length}`;
  },
});
const make = defineTool({
  name: 'make',
  description: 'makes a text',
  input: z.object({ word: z.string(), whole: z.boolean() }),
  effect: 'read',
  execute: async ({ word, whole }) => {
    const text = word.repeat(4_000);
    return whole ? artifact(text, { name: 'report' }) : text;
  },
});

/** Does what the first message says, and includes its last word in what is stored. */
async function obey({ messages, files }: ModelRequest): Promise<ModelReply> {
  const [task = '', word = ''] = (messages[0]?.text ?? '').split(' ');
  const last = messages.at(-1)?.text ?? '';
  const step = messages.filter(({ role }) => role === 'assistant').length;
  switch (`${task} ${step}`) {
    case 'large-arguments 0':
      return replyCall('pay', { note: word.repeat(3_000) });
    case 'context 0':
      return replyCall('pay', { note: 'x' });
    case 'artifact 0':
    case 'long-result 0':
      return replyCall('make', { word, whole: task === 'artifact' });
    case 'artifact 1':
      return replyCall('pay', { note: 'report' });
    case 'long-result 1':
      return replyCall('read_result', { ref: /"ref":"([0-9a-f]{64})"/.exec(last)?.[1] ?? '' });
    case 'invented 0':
      return replyCall('read_result', { ref: 'ab'.repeat(32) });
    case 'steps 0':
    case 'steps 1':
    case 'steps 2':
      return replyCall('make', { word: `${step}`, whole: false });
    case 'look 0':
      await Promise.all(
        messages.flatMap((one) =>
          one.role === 'user'
            ? (one.attachments ?? []).map(
                async (each) => 'blob' in each && (await files?.(each.blob)),
              )
            : [],
        ),
      );
      return replyText('seen');
    default:
      return replyText(last.slice(0, 200));
  }
}

let rig: Rig;
beforeAll(async () => {
  rig = await createMemoryRig();
  const tools = [...defaultTools(), pay, make];
  const agents = [
    defineAgent({ name: 'a', instructions: 'x', model: 'm', tools }),
    clerk('clerk', { model: 'talk' }),
  ];
  const models = {
    m: { call: obey },
    talk: { call: async (request: ModelRequest) => replyTo(request) },
  };
  await rig.worker(agents, {
    models,
    blobs: store,
    archive,
    segment: { steps: 2, bytes: 2_000_000 },
  });
});
afterAll(async () => await rig.close());

async function untilBlocked(handle: WorkflowHandle, message: RegExp): Promise<void> {
  const blocked = {
    status: 'blocked',
    reason: 'storage',
    message: expect.stringMatching(message),
  };
  await vi.waitFor(
    async () => expect(await handle.query<RunStatus>('status')).toMatchObject(blocked),
    { timeout: 45_000, interval: 50 },
  );
  // A reader without a worker sees the same.
  expect(toRunStatus(await readRun(rig.client, handle.workflowId), Date.now())).toMatchObject(
    blocked,
  );
}

async function start(task: string, word: string, rest: Partial<RunInput> = {}) {
  return await rig.start({ agent: 'a', message: `${task} ${word}`, ...rest });
}

async function resumed(handle: WorkflowHandle, word: string): Promise<Ended> {
  faults.delete(word);
  await handle.executeUpdate('resume');
  return await rig.end(handle);
}

describe.concurrent('a run whose storage fails is blocked, and continues when it is back', () => {
  test.each<readonly [string, string, Fault, RegExp]>([
    [
      'large-arguments',
      'down',
      'down',
      /^the arguments of pay \(call_1_1_0\) cannot be read: blob [0-9a-f]{64}: connect ECONNREFUSED$/,
    ],
    [
      'artifact',
      'damaged',
      'damaged',
      /^artifact "report" cannot be read: blob [0-9a-f]{64} is damaged: .*restore it from a backup/,
    ],
    [
      'long-result',
      'missing',
      'missing',
      /^a text that was too large to show cannot be read: blob [0-9a-f]{64} is missing/,
    ],
  ])('%s, %s', async (task, _what, fault, message) => {
    const word = randomUUID();
    faults.set(word, fault);
    const handle = await start(task, word);
    await untilBlocked(handle, message);
    const { outcome, history } = await resumed(handle, word);
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(outcome.answer).toMatch(task === 'long-result' ? /^\[bytes 0/ : /^paid for/);
    expect(timeouts(history)).toBe(0);
  });

  test('context, which was stored and is missing, by itself', async () => {
    const word = randomUUID();
    faults.set(word, 'missing');
    const handle = await start('context', word, { context: { notes: word.repeat(100) } });
    await untilBlocked(handle, /^the run's context cannot be read: blob [0-9a-f]{64} is missing/);
    faults.delete(word);
    expect((await rig.end(handle)).outcome).toMatchObject({ status: 'completed' });
  });

  test('context, which the store does not accept at the start', async () => {
    const word = randomUUID();
    faults.set(word, 'full');
    const handle = await start('context', word, { context: { notes: word.repeat(1_000) } });
    await untilBlocked(handle, /the disk is full/);
    expect((await resumed(handle, word)).outcome).toMatchObject({ status: 'completed' });
  });

  test('attachment, which is missing', async () => {
    const id = `look-${randomUUID()}`;
    const text = ownedText('attachment', id, 'AAAA');
    const blob = await store.put(text);
    texts.delete(blob.sha256);
    const attachments = [{ type: 'image', mediaType: 'image/png', blob }] as const;
    const handle = await rig.start({ agent: 'a', message: 'look x', attachments }, id);
    await untilBlocked(handle, new RegExp(`blob ${blob.sha256} is missing`));
    await store.put(text);
    expect((await resumed(handle, '')).outcome).toMatchObject({ answer: 'seen' });
  });

  test.each<readonly [Fault, RegExp]>([
    ['full', /the disk is full/],
    [
      'damaged',
      /^an earlier part of the conversation cannot be read: blob [0-9a-f]{64} is damaged/,
    ],
  ])('a fork, whose messages are in a store that is %s', async (fault, message) => {
    const word = randomUUID();
    const client = await clientOf(rig);
    const id = `talk-${word}`;
    await client.send(id, `remember ${word}`, { start: { agent: 'clerk' } });
    await client.result(id, { turn: 1 });
    faults.set(word, fault);
    const { id: forked } = await client.fork(id, { message: 'and now?' });
    const handle = rig.client.workflow.getHandle(forked);
    await untilBlocked(handle, message);
    expect((await resumed(handle, word)).outcome).toMatchObject({ answer: 'done: and now?' });
    await client.close(id);
    await client.disconnect();
  });
});

test('a model that invents a reference gets an error; the run is not blocked', async () => {
  const { outcome } = await rig.run({ agent: 'a', message: 'invented x' });
  expect(outcome.answer).toContain('this conversation has no text abab');
});

test('a run does not wait for an archive that is down while its segment has room', async () => {
  archiveIsDown = true;
  const { outcome, history } = await rig.run({ agent: 'a', message: 'steps x', archive: true });
  archiveIsDown = false;
  expect(outcome).toMatchObject({ status: 'completed', steps: 4, segments: 1 });
  const kept = (history.events ?? []).filter(
    ({ activityTaskFailedEventAttributes: failed }) =>
      failed?.failure?.applicationFailureInfo?.type === 'storage',
  );
  expect(kept.length).toBeGreaterThan(0);
  expect(timeouts(history)).toBe(0);
});

test('nothing is done while the storage is down, and everything once after that', () => {
  expect(paid).toBe(4);
});

function timeouts({ events }: Ended['history']): number {
  return (events ?? []).filter((event) => event.activityTaskTimedOutEventAttributes).length;
}
