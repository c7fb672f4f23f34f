import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import {
  WorkflowFailedError,
  WorkflowUpdateFailedError,
  type WorkflowHandle,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../../src/agents/agent.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { type Archive, BlobError, type BlobStore } from '../../src/storage/blob-store.js';
import { fileBlobStore } from '../../src/storage/file-stores.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { mcpServer } from '../../src/mcp/mcp-server.js';
import {
  ModelError,
  type ModelReply,
  type Model,
  type ModelRequest,
} from '../../src/models/model.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { resumeUpdate } from '../../src/workflows/messages/definitions.js';
import { clientOf } from '../support/clerk.js';
import { ask, asking, blocked, decide, outcomeOf, statusOf } from '../support/conversation.js';
import { gate } from '../support/gate.js';
import { portOf } from '../support/port-of.js';
import { createRig, type Rig } from '../support/rig.js';
import { messagesIn, segmentsOf } from '../support/segments.js';
import { getOpenBatch } from '../../src/core/state/turn.js';

const paid: string[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ to: z.string() }),
  effect: 'once',
  timeout: 300,
  execute: async ({ to }) => {
    paid.push(to);
    if (to === 'silence') await new Promise(() => undefined);
    return `paid ${to}`;
  },
});
const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: async ({ at }) => `seen ${at}`,
});
const agent = (tools = [look, pay], name = 'clerk'): Agent =>
  defineAgent({ name, instructions: 'do', model: 'm', tools });

type Answer = (request: ModelRequest) => ModelReply | Promise<ModelReply>;
/** By the first message of the run. */
const answers = new Map<string, Answer>();
const model: Model = {
  call: async (request) => {
    const answer = answers.get(request.messages[0]?.text ?? '') ?? (() => replyText('done'));
    return await answer(request);
  },
};
const models = { m: model };
const resultsIn = ({ messages }: ModelRequest): readonly string[] =>
  messages.flatMap(({ role, text }) => (role === 'tool' ? [text] : []));
/** Makes these calls first, and answers when it has their results. */
const calling =
  (...calls: readonly [string, Record<string, string>][]): Answer =>
  (request) =>
    resultsIn(request).length === 0
      ? replyCalls(calls.map(([name, given]) => ({ name, arguments: given })))
      : replyText('done');

/** Texts with a word in this set cannot be read. */
const lost = new Set<string>();
let reads = 0;
function losing(files: BlobStore): BlobStore {
  return {
    put: async (text) => await files.put(text),
    get: async (ref) => {
      const text = await files.get(ref);
      if (![...lost].some((word) => text.includes(word))) return text;
      reads += 1;
      throw new BlobError(`blob ${ref.sha256} is missing`, { kind: 'missing' });
    },
  };
}

/** Ends with its test, so that the next worker takes over its workflow thread. */
async function newRig(): Promise<Rig> {
  const own = await createRig();
  onTestFinished(() => own.close());
  return own;
}
let rig: Rig;
let client: PerdureClient;
let mute: Server;
beforeAll(async () => {
  mute = createServer().listen(0, '127.0.0.1');
  await once(mute, 'listening');
  rig = await createRig();
  client = await clientOf(rig);
  const url = `http://127.0.0.1:${portOf(mute)}/mcp`;
  const slow = defineAgent({
    name: 'slow',
    instructions: 'do',
    model: 'm',
    mcp: [mcpServer({ name: 'mute', transport: 'http', url })],
  });
  const segment = { steps: 1, bytes: 1e9, events: 80 };
  const blobs = losing(fileBlobStore(rig.home));
  await rig.worker([agent(), slow], { models, segment, blobs });
});
afterAll(async () => {
  mute.close();
  await client.disconnect();
  await rig.close();
});

async function lastRunId(handle: WorkflowHandle): Promise<string> {
  return (await handle.describe()).runId;
}

describe('a blocked run continues in a new segment', () => {
  test('whenever its segment is full, blocked for the same reason, and ends when the cause is fixed', async () => {
    let isDown = true;
    let calls = 0;
    answers.set('down', () => {
      calls += 1;
      if (isDown) throw new ModelError('no key', { kind: 'credentials', type: 'http_401' });
      return replyText('up');
    });
    const handle = await rig.start({ agent: 'clerk', message: 'down' });
    await blocked(handle);
    const first = await lastRunId(handle);
    while ((await lastRunId(handle)) === first) {
      const before = calls;
      await handle.executeUpdate(resumeUpdate, { args: [{}] });
      await vi.waitFor(() => expect(calls).toBeGreaterThan(before), {
        timeout: 40_000,
        interval: 50,
      });
    }
    const status = await blocked(handle);
    expect(status).toMatchObject({ reason: 'credentials', segments: 2, turn: 1 });
    expect(status.message).toContain('no key');
    const found = await client.status(handle.workflowId);
    expect(found).toMatchObject({ status: 'blocked', reason: 'credentials', segments: 2 });
    isDown = false;
    await handle.executeUpdate(resumeUpdate, { args: [{}] });
    expect(await handle.result()).toMatchObject({ status: 'completed', answer: 'up', steps: 1 });
    const segments = await segmentsOf(rig.client, handle.workflowId);
    expect(segments).toHaveLength(2);
    expect(segments[0]?.history.events?.length).toBeLessThan(120);
  });

  test('while it waits for a blob, which the next segment waits for too', async () => {
    lost.add('vanished');
    answers.set('storage', calling(['look', { at: 'a' }]));
    const context = { notes: 'vanished'.repeat(200) };
    const handle = await rig.start({ agent: 'clerk', message: 'storage', context });
    await blocked(handle);
    while ((await statusOf(handle)).segments === 1) {
      const before = reads;
      await handle.executeUpdate(resumeUpdate, { args: [{}] });
      await vi.waitFor(() => expect(reads).toBeGreaterThan(before), {
        timeout: 40_000,
        interval: 50,
      });
      await blocked(handle);
    }
    expect(await statusOf(handle)).toMatchObject({ reason: 'storage', segments: 2 });
    const found = await client.status(handle.workflowId);
    expect(found).toMatchObject({ status: 'blocked', reason: 'storage', segments: 2 });
    lost.clear();
    expect(await handle.result()).toMatchObject({ status: 'completed', toolCalls: 1 });
  });

  test('with a half-finished batch, whose unknown outcome is decided there and never executed again', async () => {
    answers.set('unknown', calling(['pay', { to: 'silence' }], ['look', { at: 'a' }]));
    const handle = await rig.start({ agent: 'clerk', message: 'unknown' });
    await vi.waitFor(async () => expect((await statusOf(handle)).segments).toBe(2), {
      timeout: 20_000,
      interval: 50,
    });
    const status = await asking(handle);
    expect(status.pending).toMatchObject([{ kind: 'outcome_unknown', call: 'call_1_1_0' }]);
    const found = await client.status(handle.workflowId);
    const shown = status.pending.map((one) => ({ ...one, fix: `npx ${one.fix}` }));
    expect(found.pending).toEqual(shown);
    expect(found).toMatchObject({ status: 'waiting_decision', reason: 'outcome_unknown' });
    await decide(handle, { as: 'happened', result: 'it went out' });
    expect(await handle.result()).toMatchObject({ status: 'completed', toolCalls: 2 });
    expect(paid.filter((to) => to === 'silence')).toHaveLength(1);
    const segments = await segmentsOf(rig.client, handle.workflowId);
    const before = segments[0]?.view.state;
    expect((before ? getOpenBatch(before) : null)?.results.map((one) => one?.text)).toEqual([
      undefined,
      'seen a',
    ]);
    expect(
      messagesIn(segments)
        .map(({ text }) => text)
        .slice(2, 4),
    ).toEqual(['it went out', 'seen a']);
  });

  test('and is found by a worker that has the tool, among others that lack it', async () => {
    const own = await newRig();
    const door = gate();
    answers.set('moved', async (request) => {
      if (resultsIn(request).length > 0) return replyText('done');
      await door.wait();
      return replyCall('pay', { to: 'bank' });
    });
    const segment = { steps: 1, bytes: 1e9 };
    const complete = await own.worker([agent()], { models, segment });
    const handle = await own.start({ agent: 'clerk', message: 'moved' });
    await door.reached;
    await own.worker([agent([look])], { models, segment });
    const stopped = complete.shutdown();
    door.release();
    await stopped;
    expect(await blocked(handle)).toMatchObject({ reason: 'tool_missing' });
    await own.worker([agent()], { models, segment });
    expect(await handle.result()).toMatchObject({ status: 'completed', toolCalls: 1 });
    expect(paid.filter((to) => to === 'bank')).toHaveLength(1);
    await segmentsOf(own.client, handle.workflowId);
  });
});

describe('a run of an agent that no worker has', () => {
  test('is blocked with the nearest names, and continues by itself when a worker has it', async () => {
    const handle = await rig.start({ agent: 'clark', message: 'hello', open: true });
    const status = await blocked(handle);
    expect(status).toMatchObject({ agent: 'clark', reason: 'agent_missing', outcome: null });
    expect(status.message).toContain('got "clark" (nearest: clerk)');
    await vi.waitFor(
      async () => {
        const found = await client.status(handle.workflowId);
        expect(found).toMatchObject({ status: 'blocked', reason: 'agent_missing' });
        expect(found.message).toBe(status.message);
      },
      { timeout: 40_000, interval: 50 },
    );
    await ask(handle, 'and this');
    await rig.worker([agent([look], 'clark')], { models, segment: { steps: 1, bytes: 1e9 } });
    expect(await outcomeOf(handle, 2)).toMatchObject({ status: 'completed', answer: 'done' });
    await handle.cancel();
    await handle.result().catch(() => undefined);
    const texts = messagesIn(await segmentsOf(rig.client, handle.workflowId)).map(
      ({ text }) => text,
    );
    expect(texts).toEqual(['hello', 'done', 'and this', 'done']);
  });
});

/** Cancels, and expects that the run, its memo, and its readers agree on it. */
async function expectCancelled(handle: WorkflowHandle, turn: number | null = 1): Promise<void> {
  await handle.cancel();
  await expect(handle.result()).rejects.toBeInstanceOf(WorkflowFailedError);
  const { status, memo } = await handle.describe();
  expect(status.name).toBe('CANCELLED');
  expect(memo).toMatchObject({ status: 'cancelled', reason: 'cancelled' });
  const found = await client.status(handle.workflowId);
  expect(found).toMatchObject({ status: 'done', reason: 'cancelled' });
  if (turn === null) return;
  expect(memo).toMatchObject({ turn });
  expect(await client.result(handle.workflowId)).toMatchObject({ status: 'cancelled' });
}

describe('a cancel takes effect', () => {
  test('while the tools of an MCP server are listed', async () => {
    const asked = once(mute, 'connection');
    const handle = await rig.start({ agent: 'slow', message: 'go' });
    await asked;
    await expectCancelled(handle);
    const { messages } = await client.transcript(handle.workflowId);
    expect(messages.map(({ text }) => text)).toEqual(['go']);
    await segmentsOf(rig.client, handle.workflowId);
  });

  test('while an open run lists them, with a message and a change of limits that wait', async () => {
    const handle = await rig.start({ agent: 'slow', open: true });
    await vi.waitFor(
      async () => {
        expect((await handle.describe()).raw.pendingActivities).toHaveLength(1);
      },
      { timeout: 40_000, interval: 50 },
    );
    await ask(handle, 'one');
    // An update that the run has not accepted yet would be rejected because the run is not found.
    const limits = await handle.startUpdate('setLimits', {
      args: [{ steps: 3 }],
      waitForStage: 'ACCEPTED',
    });
    await expectCancelled(handle, null);
    await expect(limits.result()).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
  });

  test('while no worker has its agent', async () => {
    const handle = await rig.start({ agent: 'nobody', message: 'go' });
    await blocked(handle);
    await expectCancelled(handle);
  });

  test('while it forks, while a segment ends, and while the archive is down', async () => {
    const own = await newRig();
    const [hang, store] = [gate(), gate()];
    const files = fileBlobStore(own.home);
    const blobs: BlobStore = {
      ...files,
      put: async (text) => {
        await store.wait();
        return await files.put(text);
      },
    };
    let isHeld = false;
    const archive: Archive = {
      write: async () => {
        if (isHeld) await hang.wait();
        else throw ApplicationFailure.nonRetryable('down');
      },
      list: async () => [],
      read: async () => '',
    };
    await own.worker([agent()], { models, archive, blobs, segment: { steps: 1, bytes: 1e9 } });
    // What cannot be archived is read from the history; the run does not wait for a store that is
    // down.
    const open = await own.start({ agent: 'clerk', message: 'hi', open: true });
    expect(await outcomeOf(open, 1)).toMatchObject({ answer: 'done' });
    await ask(open, 'more');
    expect(await client.result(open.workflowId, { turn: 2 })).toMatchObject({ answer: 'done' });
    const { messages } = await client.transcript(open.workflowId);
    expect(messages.map(({ turn, text }) => `${turn} ${text}`)).toEqual([
      '1 hi',
      '1 done',
      '2 more',
      '2 done',
    ]);
    expect(await client.status(open.workflowId)).toMatchObject({ status: 'waiting_message' });
    await expectCancelled(open, null);
    isHeld = true;
    answers.set('leaves', calling(['look', { at: 'a' }]));
    const leaving = await own.start({ agent: 'clerk', message: 'leaves', open: true });
    await hang.reached;
    await expectCancelled(leaving);
    const forking = await own.start({
      agent: 'clerk',
      message: 'again',
      fork: { run: open.workflowId },
    });
    await store.reached;
    await expectCancelled(forking);
    hang.release();
    store.release();
  });
});

describe('an activity that was completed by hand', () => {
  const byHand = async (handle: WorkflowHandle, result: unknown): Promise<void> => {
    const { raw } = await handle.describe();
    const activityId = raw.pendingActivities?.[0]?.activityId ?? '';
    await rig.client.activity.complete({ workflowId: handle.workflowId, activityId }, result);
  };

  test.each([
    ['a text', { text: 'by hand' }],
    ['nothing', null],
  ])(
    'of a model with %s ends the turn, visibly, for the run and for its readers',
    async (what, result) => {
      const door = gate();
      answers.set(`model ${what}`, async () => {
        await door.wait();
        return replyText('late');
      });
      const handle = await rig.start({ agent: 'clerk', message: `model ${what}`, open: true });
      await door.reached;
      await byHand(handle, result);
      const error = expect.stringContaining('completed by hand');
      const end = { status: 'failed', reason: 'error', error };
      expect(await outcomeOf(handle, 1)).toMatchObject(end);
      expect(await client.result(handle.workflowId, { turn: 1 })).toMatchObject(end);
      expect(await client.status(handle.workflowId)).toMatchObject({ outcome: end });
      door.release();
      await handle.terminate();
    },
  );
});
