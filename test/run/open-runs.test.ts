import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate } from '../../src/workflows/messages/definitions.js';
import {
  ask,
  obedientModel,
  outcomeOf,
  startWith,
  statusOf,
  untilStatus,
} from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import type { Rig } from '../support/rig.js';
import { messagesIn, segmentsOf, turnsIn } from '../support/segments.js';

let rig: Rig;
const executed: string[] = [];
const model = obedientModel();

const note = defineTool({
  name: 'note',
  description: 'writes a text down',
  input: z.object({ text: z.string() }),
  effect: 'keyed',
  execute: async ({ text }) => {
    executed.push(text);
    return `noted ${text}`;
  },
});
const agent = defineAgent({
  name: 'clerk',
  instructions: 'do as told',
  model: 'm',
  tools: [note],
});

beforeAll(async () => {
  rig = await createMemoryRig();
  await rig.worker([agent], { models: { m: model }, segment: { steps: 5, bytes: 2_000_000 } });
});
afterAll(async () => await rig.close());

describe('an open run', () => {
  test('answers one message after the other, remembers them, and ends when it is closed', async () => {
    const handle = await rig.start({ agent: 'clerk', message: 'one', open: true });
    expect(await outcomeOf(handle, 1)).toMatchObject({ status: 'completed', answer: 'done: one' });
    expect(await ask(handle, 'two')).toMatchObject({ turn: 2 });
    expect(await outcomeOf(handle, 2)).toMatchObject({ answer: 'done: two', steps: 1 });
    const status = await untilStatus(handle, 'waiting_message');
    expect(status).toMatchObject({
      turn: 2,
      queued: 0,
      reason: 'answer',
      usage: { inputTokens: 20 },
    });
    expect(model.requests.at(-1)?.messages.map(({ text }) => text)).toEqual([
      'one',
      'done: one',
      'two',
    ]);
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    expect(await handle.result()).toMatchObject({
      status: 'completed',
      reason: 'closed',
      answer: 'done: two',
      steps: 2,
      segments: 1,
    });
    const segments = await segmentsOf(rig.client, handle.workflowId);
    expect(turnsIn(segments).map(({ turn, outcome }) => [turn, outcome.answer])).toEqual([
      [1, 'done: one'],
      [2, 'done: two'],
    ]);
  });

  test('receives its first message with its start', async () => {
    const { handle, receipt } = await startWith(rig, { agent: 'clerk', open: true }, 'hello');
    expect(receipt).toMatchObject({ turn: 1 });
    expect(await outcomeOf(handle, 1)).toMatchObject({ answer: 'done: hello' });
    const again = await startWith(
      rig,
      { agent: 'clerk', open: true },
      { message: 'more', id: 'm2' },
      handle.workflowId,
    );
    expect(again.receipt).toMatchObject({ turn: 2 });
  });

  test('continues through many segments without losing, duplicating, or renumbering a message', async () => {
    const turns = 7;
    const handle = await rig.start({ agent: 'clerk', open: true, message: 'steps 2 (1)' });
    for (let turn = 2; turn <= turns; turn += 1) {
      expect(await ask(handle, { message: `steps 2 (${turn})`, id: `m${turn}` })).toMatchObject({
        turn,
      });
    }
    for (let turn = 1; turn <= turns; turn += 1) {
      await outcomeOf(handle, turn).catch(() => undefined);
    }
    expect(await ask(handle, { message: 'again', id: 'm2' })).toMatchObject({
      turn: 2,
      duplicate: true,
    });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    expect(await handle.result()).toMatchObject({ reason: 'closed', steps: 3 * turns });
    const segments = await segmentsOf(rig.client, handle.workflowId);
    expect(segments.length).toBeGreaterThan(3);
    const said = messagesIn(segments);
    expect(said.map(({ n }) => n)).toEqual(said.map((_, index) => index));
    expect(said.filter(({ role }) => role === 'user').map(({ text }) => text)).toEqual(
      Array.from({ length: turns }, (_, index) => `steps 2 (${index + 1})`),
    );
    expect(turnsIn(segments).map(({ turn, outcome }) => [turn, outcome.answer])).toEqual(
      Array.from({ length: turns }, (_, i) => [i + 1, `done: steps 2 (${i + 1})`]),
    );
  });

  test('continues in a new segment in the middle of a turn', async () => {
    const name = `steps 11 ${randomUUID()}`;
    const { outcome, handle } = await rig.run({ agent: 'clerk', message: name });
    expect(outcome).toMatchObject({ status: 'completed', answer: `done: ${name}`, steps: 12 });
    expect(outcome.segments).toBe(3);
    const segments = await segmentsOf(rig.client, handle.workflowId);
    const said = messagesIn(segments);
    expect(said.map(({ n }) => n)).toEqual(said.map((_, index) => index));
    expect(executed.filter((text) => text.startsWith(name))).toHaveLength(11);
    const requests = model.requests.filter(({ messages }) => messages[0]?.text === name);
    const last = requests.at(-1)?.messages ?? [];
    expect(requests).toHaveLength(12);
    for (const { messages } of requests) expect(messages).toEqual(last.slice(0, messages.length));
  });

  test('has a distinct status while it waits for a message', async () => {
    const handle = await rig.start({ agent: 'clerk', message: 'one', open: true });
    await untilStatus(handle, 'waiting_message');
    expect(await statusOf(handle)).toMatchObject({ status: 'waiting_message', turn: 1 });
  });
});
