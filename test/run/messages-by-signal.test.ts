import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { status } from '../../src/cli/commands/status.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Message } from '../../src/core/transcript/messages.js';
import { askUpdate, messageSignal } from '../../src/workflows/messages/definitions.js';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel, statusOf } from '../support/conversation.js';
import { runInProcess } from '../support/in-process.js';
import { createRig, type Rig } from '../support/rig.js';
import { messagesIn, segmentsOf } from '../support/segments.js';
import { expectDelivered } from '../support/delivered.js';
import { RefusedError } from '../../src/core/errors.js';

const start = { agent: 'clerk' };
let rig: Rig;
let client: PerdureClient;

beforeEach(async () => {
  rig = await createRig();
  client = await clientOf(rig, { by: 'test: ann' });
});
afterEach(async () => {
  await client.disconnect();
  await rig.close();
});

async function bringWorker(): Promise<void> {
  const segment = { steps: 1, bytes: 2_000_000 };
  await rig.worker([clerk()], { models: { m: obedientModel() }, segment });
}

function texts(messages: readonly Message[]): readonly string[] {
  return messages.filter(({ role }) => role === 'user').map(({ text }) => text);
}

describe('a message without a worker', () => {
  test('is recorded, and begins exactly one turn when a worker starts, however often it was sent', async () => {
    const id = `signal-${randomUUID()}`;
    const hello = { message: 'hello', id: 'm-1' };
    const recorded = { delivered: false, messageId: 'm-1' };
    expect(await client.send(id, hello, { start })).toEqual(recorded);
    expect(await client.send(id, hello)).toEqual(recorded);
    await bringWorker();
    expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'done: hello' });
    expect(await client.send(id, hello)).toMatchObject({ delivered: true, turn: 1 });
    // By update, for comparison: readers show no difference.
    const { turn } = await expectDelivered(client.send(id, { message: 'next', id: 'm-2' }));
    await client.result(id, { turn });
    const { messages } = await client.transcript(id);
    const user = (text: string, messageId: string, at: number) => {
      const sent = { role: 'user', text, id: messageId, by: 'test: ann', turn: at };
      return expect.objectContaining(sent);
    };
    expect(messages.filter(({ role }) => role === 'user')).toEqual([
      user('hello', 'm-1', 1),
      user('next', 'm-2', 2),
    ]);
    expect(await statusOf(rig.client.workflow.getHandle(id))).toMatchObject({ turn: 2, queued: 0 });
    const begun: unknown[] = [];
    for await (const event of client.events(id)) {
      if (event.type === 'turn-begun') begun.push(event.turn);
      if (event.type === 'turn-ended' && event.turn === 2) break;
    }
    expect(begun).toEqual([1, 2]);
    await client.close(id);
    await rig.end(rig.client.workflow.getHandle(id));
    const segments = await segmentsOf(rig.client, id);
    expect(texts(messagesIn(segments))).toEqual(['hello', 'next']);
    // A recorded message does not restart a run that has ended.
    await rig.stopWorkers();
    const late = client.send(id, 'late', { start });
    await expect(late).rejects.toBeInstanceOf(RefusedError);
    expect(await client.status(id)).toMatchObject({ status: 'done', turn: 2 });
  });

  test('precedes messages sent by update, in the first task of a run and in a later one', async () => {
    const handle = await rig.start({ agent: 'clerk', open: true });
    const id = handle.workflowId;
    const order: string[] = [];
    for (const round of ['first', 'later']) {
      const sent = [1, 2, 3].map((n) => ({ message: `${round} ${n}`, id: `${round} ${n}` }));
      const [one, two, three] = sent;
      if (one === undefined || two === undefined || three === undefined) throw new Error('three');
      await handle.signal(messageSignal, one);
      const asked = handle.executeUpdate(askUpdate, { args: [three], updateId: three.id });
      await handle.signal(messageSignal, two);
      await bringWorker();
      const turn = order.length + 3;
      expect(await asked).toMatchObject({ turn });
      await client.result(id, { turn });
      await rig.stopWorkers();
      order.push(one.message, two.message, three.message);
      expect(texts((await client.transcript(id)).messages)).toEqual(order);
    }
    await bringWorker();
    await client.close(id);
    await handle.result();
    expect(texts(messagesIn(await segmentsOf(rig.client, id)))).toEqual(order);
  });

  test('that is refused later is shown in the status, and so is a malformed one', async () => {
    const handle = await rig.start({ agent: 'clerk', open: true, message: 'hello' });
    const id = handle.workflowId;
    const rubbish = [undefined, null, 7, { message: { toString: 1 }, id: 'r' }, { message: 'x' }];
    for (const value of rubbish) await handle.signal('message', value);
    await handle.signal('no-such-signal', 'x');
    await handle.signal(messageSignal, { message: 'again', id: 'm', refresh: true, mode: 'steer' });
    await bringWorker();
    expect(await client.result(id, { turn: 1 })).toMatchObject({ status: 'completed' });
    const { refused = [] } = await client.status(id);
    expect(refused.map((one) => one.id)).toEqual([null, null, null, 'r', null]);
    expect((await statusOf(handle)).refused).toMatchObject(
      refused.map(({ id: messageId, reason }) => ({ id: messageId, reason })),
    );
    // As many as no list should have: the list is bounded, and the total is not.
    const flood = Array.from({ length: 620 }, (_, number) => ({ id: `f${number}` }));
    await Promise.all(flood.map((value) => handle.signal('message', value)));
    await client.close(id);
    await rig.end(handle);
    const after = await client.status(id);
    expect(after).toMatchObject({ refusedTotal: 620 + rubbish.length, decisionsTotal: 1 });
    expect(after.refused).toHaveLength(20);
    const { stdout } = await runInProcess(
      status,
      { id },
      { address: inject('temporalAddress'), home: rig.home, taskQueue: rig.taskQueue },
    );
    expect(stdout).toMatch(/^refused +the newest 20, and 605 more$/m);
  });
});

test('no signal is lost or repeated if the run continues in a new segment meanwhile', async () => {
  await bringWorker();
  const id = `segments-${randomUUID()}`;
  await client.send(id, 'm0', { start });
  const handle = rig.client.workflow.getHandle(id);
  const count = 8;
  // Several at once, all the time: some come while a segment is being left.
  for (let number = 1; number <= count; number += 4) {
    const some = [0, 1, 2, 3].map((more) => ({
      message: `m${number + more}`,
      id: `id-${number + more}`,
    }));
    await Promise.all(some.map((message) => handle.signal(messageSignal, message)));
    await client.result(id, { turn: number });
  }
  await client.close(id);
  await handle.result();
  const segments = await segmentsOf(rig.client, id);
  expect(segments.length).toBeGreaterThan(count / 2);
  const sent = texts(messagesIn(segments));
  expect(sent).toHaveLength(count + 1);
  expect(new Set(sent).size).toBe(count + 1);
});

test('each decision is recorded with the person who made it, and is made once per update id', async () => {
  await bringWorker();
  const id = `decided-${randomUUID()}`;
  await client.send(id, 'hello', { start });
  await client.result(id, { turn: 1 });
  await client.pause(id);
  await client.setLimits(id, { steps: 9 }, { by: 'test: bob' });
  await client.resume(id, { by: 'test: bob' });
  const handle = rig.client.workflow.getHandle(id);
  await expect(client.pause(id, { by: '' })).rejects.toThrow('by: expected a string of 1–200');
  for (const update of ['pause', 'resume', 'close', 'setLimits', 'cancelTurn', 'resolve']) {
    const forged = handle.executeUpdate(update, { args: [{ by: 7, steps: 1 }] });
    await expect(forged).rejects.toMatchObject({
      cause: { message: 'by: expected a string of 1–200 characters, got 7' },
    });
  }
  await client.close(id);
  await rig.end(handle);
  const decided = [
    { what: 'pause', by: 'test: ann' },
    { what: 'setLimits', by: 'test: bob' },
    { what: 'resume', by: 'test: bob' },
    { what: 'close', by: 'test: ann' },
  ];
  expect((await client.status(id)).decisions).toMatchObject(decided);
});
