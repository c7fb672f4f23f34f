import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Decision } from '../../src/core/transcript/request.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  effect: 'once',
  input: z.object({ order: z.string(), euros: z.number() }),
  approval: ({ euros }) => euros > 50,
  describe: ({ order, euros }) => `refund ${euros} € of order ${order}`,
  execute: ({ order, euros }) => {
    desk.did(`refund ${order} ${euros}`);
    return `refunded ${euros}`;
  },
});

const look = defineTool({
  name: 'look',
  description: 'Looks an order up.',
  effect: 'read',
  input: z.object({ order: z.string() }),
  execute: ({ order }) => {
    desk.did(`look ${order}`);
    return `order ${order} is fine`;
  },
});

const clerk = defineAgent({
  name: 'clerk',
  instructions: 'Help.',
  model: 'script',
  tools: [refund, look],
  rules: [{ tool: 'refund', where: { op: 'over', path: 'euros', value: 1_000 }, then: 'deny' }],
});

beforeAll(async () => {
  desk = await createDesk(await createMemoryRig());
  await desk.work([clerk]);
});
beforeEach(() => desk.reset());
afterAll(async () => await desk.close());

describe('a call of a tool that requires approval', () => {
  test('waits, is shown as it will be executed, and runs after an approval', async () => {
    desk.script([{ refund: { order: '17', euros: 60 } }, 'Refunded.']);
    const { handle, requests } = await desk.asked({
      agent: 'clerk',
      message: 'refund 17',
      by: 'ann',
    });
    const [request] = requests;
    expect(request).toMatchObject({
      id: 'r1',
      kind: 'approval',
      call: 'call_1_1_0',
      tool: 'refund',
      effect: 'once',
      arguments: '{"euros":60,"order":"17"}',
      requester: 'ann',
      expiresAt: null,
      decisions: ['approve', 'deny', 'edit', 'answer'],
    });
    expect(request?.shown.split('\n')).toEqual([
      'refund · once: has a side effect, never retried',
      'refund 60 € of order 17',
      'euros: 60',
      'order: "17"',
    ]);
    expect(desk.done).toEqual([]);
    await desk.decide(handle, { as: 'approve', by: 'bob' });
    expect((await desk.end(handle)).outcome).toMatchObject({
      status: 'completed',
      answer: 'Refunded.',
    });
    expect(desk.done).toEqual(['refund 17 60']);
  });

  test('costs at most five events in addition to the update', async () => {
    desk.script([{ refund: { order: '1', euros: 10 } }, 'Done.']);
    const free = await desk.run({ agent: 'clerk', message: 'a' });
    desk.script([{ refund: { order: '1', euros: 60 } }, 'Done.']);
    const { handle } = await desk.asked({ agent: 'clerk', message: 'a' });
    await desk.decide(handle, { as: 'approve' });
    const asked = await desk.end(handle);
    const count = (history: typeof free.history): number =>
      (history.events ?? []).filter(
        ({
          workflowTaskScheduledEventAttributes: a,
          workflowTaskStartedEventAttributes: b,
          workflowTaskCompletedEventAttributes: c,
        }) => !a && !b && !c,
      ).length;
    // Accepted and completed are the update's own events.
    expect(count(asked.history) - count(free.history) - 2).toBeLessThanOrEqual(5);
  });

  test('is not executed after a denial, and the model reads the note', async () => {
    desk.script([{ refund: { order: '17', euros: 60 } }, 'Not refunded.']);
    const { handle } = await desk.asked({ agent: 'clerk', message: 'refund 17' });
    await desk.decide(handle, { as: 'deny', note: 'the order is too old' });
    const { outcome } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Not refunded.' });
    expect(desk.done).toEqual([]);
    expect(desk.lastResults()).toEqual([
      expect.stringContaining('a person denied it: the order is too old'),
    ]);
  });

  test('is executed with the arguments that a person has changed', async () => {
    desk.script([{ refund: { order: '17', euros: 60 } }, 'Refunded less.']);
    const { handle } = await desk.asked({ agent: 'clerk', message: 'refund 17' });
    await desk.decide(handle, { as: 'edit', arguments: { order: '17', euros: 55 }, by: 'bob' });
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Refunded less.' });
    expect(desk.done).toEqual(['refund 17 55']);
    expect(desk.lastResults()).toEqual([expect.stringContaining('changed the arguments')]);
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['another form', { order: '17', euros: 'many' }, 'euros'],
    ['what the rules deny', { order: '17', euros: 2_000 }, 'rule: deny refund'],
  ])('cannot be changed into %s', async (_, args, why) => {
    desk.script([{ refund: { order: '17', euros: 60 } }, 'Not done.']);
    const { handle } = await desk.asked({ agent: 'clerk', message: 'refund 17' });
    await desk.decide(handle, { as: 'edit', arguments: args as Decision['arguments'] & object });
    const status = await desk.statusWhere(handle, ({ decisions }) => decisions?.length === 1);
    expect(status.decisions).toMatchObject([
      { request: 'r1', as: 'edit', refused: expect.stringContaining(why) },
    ]);
    expect(status.pending).toMatchObject([{ id: 'r1', kind: 'approval' }]);
    await desk.decide(handle, { as: 'deny' });
    await desk.end(handle);
    expect(desk.done).toEqual([]);
  });

  test('may get its result from a person', async () => {
    desk.script([{ refund: { order: '17', euros: 60 } }, 'Done by hand.']);
    const { handle } = await desk.asked({ agent: 'clerk', message: 'refund 17' });
    await desk.decide(handle, { as: 'answer', result: 'refunded at the counter' });
    expect((await desk.end(handle)).outcome).toMatchObject({
      answer: 'Done by hand.',
      toolCalls: 0,
    });
    expect(desk.done).toEqual([]);
    expect(desk.lastResults()).toEqual([expect.stringContaining('refunded at the counter')]);
  });
});

describe('a message with several calls', () => {
  test('runs those without a request at once; each of the others waits alone, and results keep their order', async () => {
    desk.script([
      [
        { refund: { order: '1', euros: 60 } },
        { look: { order: '2' } },
        { refund: { order: '3', euros: 70 } },
      ],
      'Done.',
    ]);
    const { handle, requests } = await desk.asked({ agent: 'clerk', message: 'go' });
    expect(requests.map(({ id, call }) => [id, call])).toEqual([
      ['r1', 'call_1_1_0'],
      ['r2', 'call_1_1_2'],
    ]);
    await desk.untilDone('look 2');
    const decisions = requests.map(({ id: request, digest }): Decision => ({
      request,
      digest,
      as: request === 'r1' ? 'deny' : 'approve',
    }));
    await desk.decideAll(handle, decisions);
    expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Done.' });
    expect(desk.done).toEqual(['look 2', 'refund 3 70']);
    expect(desk.lastResults()).toEqual([
      expect.stringContaining('denied'),
      'order 2 is fine',
      'refunded 70',
    ]);
  });
});

test('a call that an edit makes identical to another of its message is executed as well', async () => {
  desk.script([
    [{ refund: { order: '1', euros: 60 } }, { refund: { order: '2', euros: 70 } }],
    'Refunded twice.',
  ]);
  const { handle, requests } = await desk.asked({ agent: 'clerk', message: 'go' });
  const [first, second] = requests.map(({ id: request, digest }) => ({ request, digest }));
  if (first === undefined || second === undefined) throw new Error('two requests are expected');
  const edit = { ...first, as: 'edit', arguments: { order: '2', euros: 70 } } as const;
  await desk.decideAll(handle, [edit, { ...second, as: 'approve' }]);
  expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Refunded twice.' });
  expect(desk.done).toEqual(['refund 2 70', 'refund 2 70']);
});

describe('denials', () => {
  test('end the turn with an answer after three in a row; the same call is not requested again', async () => {
    desk.script([
      { refund: { order: '1', euros: 60 } },
      { refund: { order: '1', euros: 60 } },
      { refund: { order: '2', euros: 60 } },
      'I could not refund.',
    ]);
    const { handle } = await desk.asked({ agent: 'clerk', message: 'go' });
    await desk.decide(handle, { as: 'deny' });
    await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r2');
    await desk.decide(handle, { as: 'deny' });
    const { outcome } = await desk.end(handle);
    expect(outcome).toMatchObject({
      status: 'stopped',
      reason: 'denied',
      answer: 'I could not refund.',
    });
    expect(desk.done).toEqual([]);
  });

  test('by a rule need no person', async () => {
    desk.script([{ refund: { order: '1', euros: 2_000 } }, 'Too much.']);
    const { outcome } = await desk.run({ agent: 'clerk', message: 'go' });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Too much.' });
    expect(desk.lastResults()).toEqual([expect.stringContaining('rule: deny refund')]);
  });

  test('replace requests in an unattended run', async () => {
    desk.script([{ refund: { order: '1', euros: 60 } }, 'Nobody there.']);
    const { outcome } = await desk.run({ agent: 'clerk', message: 'go', unattended: 'deny' });
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Nobody there.' });
    expect(desk.lastResults()).toEqual([expect.stringContaining('this run is unattended')]);
  });
});
