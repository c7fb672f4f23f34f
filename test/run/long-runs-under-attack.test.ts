import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { wait } from '../../src/tools/built-in/workflow-tools.js';
import type { Archive } from '../../src/storage/blob-store.js';
import type { ModelReply, Model, ModelRequest } from '../../src/models/model.js';
import { replyCall, replyCalls, replyText } from '../../src/testing/replies.js';
import {
  cancelTurnUpdate,
  closeUpdate,
  pauseUpdate,
  transcriptQuery,
} from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf, untilStatus } from '../support/conversation.js';
import { gate } from '../support/gate.js';
import { createRig, type Rig } from '../support/rig.js';
import { segmentsOf, turnsIn } from '../support/segments.js';

const big = defineTool({
  name: 'big',
  description: 'gives much',
  input: z.object({ k: z.number(), size: z.number() }),
  effect: 'read',
  execute: async ({ k, size }) => `${k} ${'x'.repeat(size)}`,
});
const put = defineTool({
  name: 'put',
  description: 'keeps a text',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: async () => 'kept',
});
const agent = defineAgent({
  name: 'clerk',
  instructions: 'do as told',
  model: 'm',
  tools: [big, put, wait()],
});

let rig: Rig;
let answer: (request: ModelRequest) => ModelReply | Promise<ModelReply> = () => replyText('x');
const model: Model = { call: async (request) => await answer(request) };
beforeAll(async () => {
  rig = await createRig();
  await rig.worker([agent], { models: { m: model } });
});
afterAll(async () => await rig.close());

const newest = ({ messages }: ModelRequest): string =>
  messages.findLast(({ role }) => role === 'user')?.text ?? '';
const resultsIn = ({ messages }: ModelRequest): number =>
  messages.filter(({ role }) => role === 'tool').length;

describe('an interruption of a turn', () => {
  test('does not affect the next turn if the reply still arrives', async () => {
    const door = gate();
    answer = async (request) => {
      if (newest(request) === 'one') {
        await door.wait();
      }
      return replyText(`done: ${newest(request)}`);
    };
    const handle = await rig.start({ agent: 'clerk', open: true, message: 'one' });
    await door.reached;
    await ask(handle, 'two');
    await handle.executeUpdate(cancelTurnUpdate, { args: [{}] });
    door.release();
    const first = await outcomeOf(handle, 1);
    expect('status' in first && ['cancelled', 'completed']).toContain(
      'status' in first && first.status,
    );
    expect(await outcomeOf(handle, 2)).toMatchObject({ status: 'completed', answer: 'done: two' });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    expect(turnsIn(await segmentsOf(rig.client, handle.workflowId))).toHaveLength(2);
  });

  test('is refused for a task, whose turn is also its end', async () => {
    const door = gate();
    answer = async () => {
      await door.wait();
      return replyText('done');
    };
    const handle = await rig.start({ agent: 'clerk', message: 'one' });
    await door.reached;
    await expect(handle.executeUpdate(cancelTurnUpdate, { args: [{}] })).rejects.toMatchObject({
      cause: { message: expect.stringContaining('cancel the run instead of the turn') },
    });
    door.release();
    expect(await handle.result()).toMatchObject({ answer: 'done' });
  });

  test('is accepted while the run continues in a new segment', async () => {
    const own = await createRig();
    const door = gate();
    const slow: Archive = {
      write: async () => {
        await door.wait();
      },
      list: async () => [],
      read: async () => '',
    };
    answer = (request) =>
      resultsIn(request) < 6
        ? replyCall('put', { text: `${resultsIn(request)}` })
        : replyText('done');
    const segment = { steps: 1, bytes: 1e6 };
    await own.worker([agent], { models: { m: model }, segment, archive: slow });
    const handle = await own.start({ agent: 'clerk', open: true, message: 'one' });
    await door.reached;
    expect(await handle.executeUpdate(cancelTurnUpdate, { args: [{ turn: 1 }] })).toEqual({
      cancelled: 1,
    });
    door.release();
    expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'cancelled' });
    await handle.terminate();
    await own.close();
  });
});

describe('a task that is paused before its turn', () => {
  test('can be canceled, and its worker survives', async () => {
    const own = await createRig();
    answer = () => replyText('done');
    const handle = await own.start({ agent: 'clerk', message: 'one' });
    const paused = handle.executeUpdate(pauseUpdate, { args: [{}] }).catch(() => undefined);
    await own.client.workflowService.getSystemInfo({});
    await handle.cancel();
    await own.worker([agent], { models: { m: model } });
    const { outcome } = await own.end(handle);
    expect(outcome).toMatchObject({ status: 'cancelled', reason: 'cancelled' });
    await paused;
    expect((await own.run({ agent: 'clerk', message: 'two' })).outcome.answer).toBe('done');
    await own.close();
  });
});

describe('the state that a new segment receives', () => {
  test('never exceeds the size of an input because of results that wait with a timer', async () => {
    answer = (request) => {
      if (resultsIn(request) > 0) return replyText('done');
      const reads = Array.from({ length: 45 }, (_, k) => ({
        name: 'big',
        arguments: { k, size: 60_000 },
      }));
      return replyCalls([...reads, { name: 'wait', arguments: { seconds: 1 } }]);
    };
    const { outcome } = await rig.run({ agent: 'clerk', message: 'go' });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'done', toolCalls: 46 });
  });

  test('never exceeds it because of messages that are larger as JSON than as text', async () => {
    const door = gate();
    answer = async () => {
      await door.wait();
      return replyText('done');
    };
    const handle = await rig.start({ agent: 'clerk', open: true, message: 'one' });
    await door.reached;
    const odd = '\u0001'.repeat(100_000);
    await expect(ask(handle, odd)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('got 600000') },
    });
    const quotes = '"'.repeat(120_000);
    await ask(handle, quotes);
    await ask(handle, quotes);
    await expect(ask(handle, quotes)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('already waiting') },
    });
    door.release();
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    expect(await handle.result()).toMatchObject({ reason: 'closed' });
  });

  test('never separates a call from its result, even if a wait comes between them', async () => {
    const own = await createRig();
    const prompts: ModelRequest['messages'][] = [];
    answer = (request) => {
      if (request.tools.length === 0) return replyText('so far');
      prompts.push(request.messages);
      const done = resultsIn(request);
      const text = 'y'.repeat(40_000);
      if (newest(request).startsWith('go') && done === 0) {
        return replyCalls([
          { name: 'put', arguments: { text } },
          { name: 'wait', arguments: { seconds: 2 } },
        ]);
      }
      return replyText(`done ${newest(request).slice(0, 9)}`);
    };
    const segment = { steps: 1, bytes: 1e6 };
    const windowed = { ...model, window: 20_000 };
    await own.worker([agent], { models: { m: windowed }, segment });
    const handle = await own.start({ agent: 'clerk', open: true, message: 'go' });
    await outcomeOf(handle, 1);
    for (const turn of [2, 3]) {
      await ask(handle, `${turn} ${'z'.repeat(20_000)}`);
      await outcomeOf(handle, turn);
    }
    for (const messages of prompts) {
      const calls = messages.flatMap((m) => (m.role === 'assistant' ? (m.calls ?? []) : []));
      const results = messages.filter(({ role }) => role === 'tool');
      expect(results.map((m) => m.role === 'tool' && m.callId)).toEqual(calls.map(({ id }) => id));
    }
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    await segmentsOf(own.client, handle.workflowId);
    await own.close();
  });
});

describe('a message', () => {
  test('ends one wait, and no later one of the turn', async () => {
    let calls = 0;
    answer = (request) => {
      calls += 1;
      if (newest(request) !== 'poll') return replyText('hi');
      return resultsIn(request) < 3 ? replyCall('wait', { seconds: 86_400 }) : replyText('gave up');
    };
    const handle = await rig.start({ agent: 'clerk', open: true, message: 'poll' });
    await untilStatus(handle, 'waiting_time');
    await ask(handle, 'are you there?');
    await ask(handle, 'hello?');
    while (resultsOf(await handle.query(transcriptQuery)) < 2);
    await untilStatus(handle, 'waiting_time');
    expect(calls).toBe(3);
    await ask(handle, 'last call');
    expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'gave up' });
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'hi' });
    await handle.terminate();
  });

  test('that arrives during a closing call begins its own turn', async () => {
    const door = gate();
    answer = async (request) => {
      if (request.toolChoice !== 'none') {
        return newest(request) === 'go' ? replyCall('put', { text: 'x' }) : replyText('done: late');
      }
      await door.wait();
      return replyText('closing');
    };
    const handle = await rig.start({
      agent: 'clerk',
      open: true,
      message: 'go',
      limits: { steps: 1 },
    });
    await door.reached;
    expect(await ask(handle, { message: 'late', mode: 'steer' })).toMatchObject({ turn: 2 });
    door.release();
    expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'stopped', answer: 'closing' });
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'done: late' });
    await handle.terminate();
  });
});

function resultsOf({
  messages,
}: {
  readonly messages: readonly { readonly role: string }[];
}): number {
  return messages.filter(({ role }) => role === 'tool').length;
}
