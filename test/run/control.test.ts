import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { project } from '../../src/history/projection.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { wait } from '../../src/tools/built-in/workflow-tools.js';
import type { Model, ModelRequest } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import {
  askUpdate,
  cancelTurnUpdate,
  closeUpdate,
  pauseUpdate,
  resumeUpdate,
  setLimitsUpdate,
  transcriptQuery,
} from '../../src/workflows/messages/definitions.js';
import { ask, outcomeOf, replyTo, statusOf, untilStatus } from '../support/conversation.js';
import { gate, type Gate } from '../support/gate.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { messagesIn, segmentsOf, turnsIn } from '../support/segments.js';

let rig: Rig;
let door: Gate = gate();
const executed: string[] = [];

const note = defineTool({
  name: 'note',
  description: 'writes a text down',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: async ({ text }) => {
    executed.push(text);
    if (text.startsWith('steps 3 held')) await door.wait();
    return 'noted';
  },
});

/**
 * Like the obedient model; `held` waits for the gate, `wait …` calls the tool `wait` with the rest.
 */
const model: Model = {
  call: async (request) => {
    const text = newest(request);
    if (text.startsWith('held')) {
      await door.wait();
    }
    const last = request.messages.at(-1);
    if (text.startsWith('wait ') && last?.role === 'user') {
      return replyCall('wait', JSON.parse(text.slice(5)) as { seconds: number });
    }
    if (last?.role === 'tool' && text.startsWith('wait ')) return replyText(last.text);
    return replyTo(request);
  },
};

function newest({ messages }: ModelRequest): string {
  return messages.findLast(({ role }) => role === 'user')?.text ?? '';
}

const agent = defineAgent({
  name: 'clerk',
  instructions: 'do as told',
  model: 'm',
  tools: [note, wait()],
});

beforeAll(async () => {
  rig = await createMemoryRig();
  await rig.worker([agent], { models: { m: model } });
});
afterAll(async () => await rig.close());

describe('messages during a turn', () => {
  test('wait for the next turn, or join the current one', async () => {
    door = gate();
    const handle = await rig.start({ agent: 'clerk', message: 'held', open: true });
    await door.reached;
    expect(await ask(handle, 'next')).toMatchObject({ turn: 2 });
    expect(await ask(handle, { message: 'also', mode: 'steer', id: 's1' })).toMatchObject({
      turn: 1,
    });
    expect(await ask(handle, { message: 'and', mode: 'steer' })).toMatchObject({ turn: 1 });
    const twice = await handle.executeUpdate(askUpdate, {
      args: [{ message: 'also', mode: 'steer', id: 's1' }],
    });
    expect(twice).toMatchObject({ turn: 1, duplicate: true });
    expect(await statusOf(handle)).toMatchObject({ turn: 1, queued: 3 });
    door.release();
    expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'done: and', steps: 2 });
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'done: next', steps: 1 });
    const { messages } = await handle.query(transcriptQuery);
    expect(messages.map(({ text }) => text)).toEqual([
      'held',
      'done: held',
      'also',
      'and',
      'done: and',
      'next',
      'done: next',
    ]);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    const segments = await segmentsOf(rig.client, handle.workflowId);
    expect(messagesIn(segments).map(({ text }) => text)).toEqual(messages.map(({ text }) => text));
  });

  test('are refused with the reason if they would never be read', async () => {
    door = gate();
    const handle = await rig.start({ agent: 'clerk', message: 'held' });
    await door.reached;
    await expect(ask(handle, 'next')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('mode "steer"') },
    });
    await expect(ask(handle, { message: '' })).rejects.toThrow('Update failed');
    await expect(ask(handle, { message: 'x', mode: 'fast' as 'queue' })).rejects.toMatchObject({
      cause: { message: expect.stringContaining('mode: expected "queue" or "steer"') },
    });
    door.release();
    expect(await handle.result()).toMatchObject({ answer: 'done: held' });
  });
});

describe('a turn', () => {
  test('leaves a run that answers the next message when it is canceled', async () => {
    door = gate();
    const handle = await rig.start({ agent: 'clerk', message: 'held', open: true });
    await door.reached;
    await handle.executeUpdate(cancelTurnUpdate, { args: [{ turn: 1 }] });
    expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'cancelled' });
    await ask(handle, 'steps 1');
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'done: steps 1', steps: 2 });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    const segments = await segmentsOf(rig.client, handle.workflowId);
    expect(turnsIn(segments).map(({ outcome }) => outcome.status)).toEqual([
      'cancelled',
      'completed',
    ]);
    door.release();
  });

  test('does not affect the next turn when it is capped', async () => {
    const handle = await rig.start({
      agent: 'clerk',
      message: 'steps 5',
      open: true,
      limits: { steps: 2 },
    });
    expect(await outcomeOf(handle, 1)).toMatchObject({
      status: 'stopped',
      reason: 'steps',
      steps: 2,
    });
    await ask(handle, 'hello');
    expect(await outcomeOf(handle, 2)).toMatchObject({
      status: 'completed',
      answer: 'done: hello',
      steps: 1,
    });
    await handle.executeUpdate(setLimitsUpdate, { args: [{ steps: 20 }] });
    await ask(handle, 'steps 5 more');
    expect(await outcomeOf(handle, 3)).toMatchObject({ status: 'completed', steps: 6 });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    expect(turnsIn(await segmentsOf(rig.client, handle.workflowId))).toHaveLength(3);
  });

  test('stops while the run is paused, and continues after resume', async () => {
    door = gate();
    const name = 'steps 3 held in a tool';
    const handle = await rig.start({ agent: 'clerk', message: name, open: true });
    while (!executed.includes(`${name} #1`)) await statusOf(handle);
    await handle.executeUpdate(pauseUpdate, { args: [{}] });
    door.release();
    await untilStatus(handle, 'paused');
    await ask(handle, 'later');
    let { messages } = await handle.query(transcriptQuery);
    while (messages.length < 3) ({ messages } = await handle.query(transcriptQuery));
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    // The work in flight has ended, and the history shows that while the run is still paused.
    const { events } = await handle.fetchHistory();
    expect(project((events ?? []).map(decodeEvent)).messages).toHaveLength(3);
    await handle.executeUpdate(resumeUpdate, { args: [{}] });
    expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'completed', steps: 4 });
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'done: later' });
    expect(executed.filter((text) => text.startsWith(name))).toHaveLength(3);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    const transcript = messagesIn(await segmentsOf(rig.client, handle.workflowId));
    expect(transcript.filter(({ role }) => role === 'tool')).toHaveLength(3);
  });
});

describe('a run', () => {
  test.each(['waiting_message', 'paused'] as const)(
    'can be canceled while it is %s',
    async (state) => {
      const handle = await rig.start({ agent: 'clerk', message: 'hello', open: true });
      await outcomeOf(handle, 1);
      if (state === 'paused') await handle.executeUpdate(pauseUpdate, { args: [{}] });
      await untilStatus(handle, state);
      await handle.cancel();
      const { outcome } = await rig.end(handle);
      expect(outcome).toMatchObject({ status: 'cancelled', steps: 1 });
      expect((await handle.describe()).memo).toMatchObject({ status: 'cancelled' });
    },
  );

  test('can be canceled while it waits for a time, and reports that to the model', async () => {
    const handle = await rig.start({
      agent: 'clerk',
      message: 'wait {"seconds":86400}',
      open: true,
    });
    await untilStatus(handle, 'waiting_time');
    await handle.cancel();
    const { outcome, projection } = await rig.end(handle);
    expect(outcome).toMatchObject({ status: 'cancelled' });
    expect(projection.messages.at(-1)).toMatchObject({ role: 'tool' });
    expect(projection.messages.at(-1)?.text).toContain('cancelled');
  });

  test('keeps its agent when another version is deployed, until a message requests the new one', async () => {
    const own = await createMemoryRig();
    const asked: string[] = [];
    const listening: Model = {
      call: async (request) => {
        asked.push(request.instructions);
        return replyTo(request);
      },
    };
    const deploy = async (instructions: string): Promise<void> => {
      await own.stopWorkers();
      const deployed = defineAgent({ name: 'clerk', instructions, model: 'm' });
      await own.worker([deployed], { models: { m: listening } });
    };
    await deploy('old');
    const handle = await own.start({ agent: 'clerk', message: 'one', open: true });
    await outcomeOf(handle, 1);
    await deploy('new');
    await ask(handle, 'two');
    await outcomeOf(handle, 2);
    await ask(handle, { message: 'three', refresh: true });
    await outcomeOf(handle, 3);
    await ask(handle, 'four');
    await outcomeOf(handle, 4);
    expect(asked).toEqual(['old', 'old', 'new', 'new']);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    expect(turnsIn(await segmentsOf(own.client, handle.workflowId))).toHaveLength(4);
    await own.close();
  });

  test('processes waiting messages before it closes, and accepts no more', async () => {
    door = gate();
    const handle = await rig.start({ agent: 'clerk', message: 'held', open: true });
    await door.reached;
    await ask(handle, 'two');
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await expect(ask(handle, 'three')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('no more messages') },
    });
    door.release();
    expect(await handle.result()).toMatchObject({
      reason: 'closed',
      answer: 'done: two',
      steps: 2,
    });
  });

  test('ends at its time limit, even while it waits', async () => {
    const { outcome } = await rig.run({
      agent: 'clerk',
      message: 'hello',
      open: true,
      limits: { run: { wallMs: 1_500 } },
    });
    expect(outcome).toMatchObject({ status: 'stopped', reason: 'wallMs', answer: 'done: hello' });
  });
});

describe('a wait', () => {
  test('is over at its time', async () => {
    const { outcome, projection } = await rig.run({
      agent: 'clerk',
      message: 'wait {"seconds":1}',
    });
    expect(outcome).toMatchObject({ answer: 'waited 1 s', toolCalls: 1 });
    expect(projection.turns[0]?.outcome.answer).toBe('waited 1 s');
  });

  test('is interrupted by a message', async () => {
    const handle = await rig.start({
      agent: 'clerk',
      message: 'wait {"seconds":86400}',
      open: true,
    });
    const status = await untilStatus(handle, 'waiting_time');
    expect(status.turn).toBe(1);
    await ask(handle, 'hello');
    const outcome = await outcomeOf(handle, 1);
    expect('answer' in outcome && outcome.answer).toContain('woken early');
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'done: hello' });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    await handle.result();
    const [segment] = await segmentsOf(rig.client, handle.workflowId);
    expect(segment?.view.turns).toHaveLength(2);
  });
});
