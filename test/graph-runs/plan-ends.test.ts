import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/tools/define-tool.js';
import { closeUpdate, undoUpdate } from '../../src/workflows/messages/definitions.js';
import { createCalendar } from '../support/calendar.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { expectKeptReplays } from '../support/replays.js';
import { createDesk, type Desk } from '../support/requests.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

const { assistant } = createCalendar(() => desk);

test('a plan in an unattended run is not executed, and the model is told why', async () => {
  await desk.work([assistant()]);
  const actions = [{ id: 'a1', tool: 'delete_event', arguments: { id: 'k' } }];
  desk.script([JSON.stringify({ actions }), 'I could not.']);
  const { outcome, projection } = await desk.run({
    agent: 'assistant',
    message: 'delete k',
    unattended: 'deny',
  });
  expect([desk.done, outcome.answer]).toEqual([[], 'I could not.']);
  expect(projection.messages.map(({ text }) => text).join('\n')).toContain(
    'Not done, because they need a decision, and this run is unattended: a1.',
  );
});

test('an executed action can be undone', async () => {
  const book = defineTool({
    name: 'book',
    description: 'x',
    input: z.object({ room: z.string() }),
    effect: 'keyed',
    execute: async ({ room }) => {
      desk.did(`book ${room}`);
      return { booking: `b-${room}` };
    },
    undo: async (_, result) =>
      desk.did(`undo ${z.object({ booking: z.string() }).parse(result).booking}`),
  });
  await desk.work([assistant({ tools: [book], rules: [] })]);
  const actions = [{ id: 'a1', tool: 'book', arguments: { room: 'blue' } }];
  desk.script([JSON.stringify({ actions }), 'Booked.']);
  const handle = await desk.rig.start({ agent: 'assistant', message: 'book', open: true });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  await handle.executeUpdate(undoUpdate, { args: [{}] });
  await desk.untilDone('undo b-blue');
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await desk.end(handle);
  expect(desk.done).toEqual(['book blue', 'undo b-blue']);
});

test('the list of undos describes an action by what its references stand for', async () => {
  const book = defineTool({
    name: 'book',
    description: 'x',
    input: z.object({ room: z.string() }),
    effect: 'keyed',
    describe: ({ room }) => `book room ${room}`,
    execute: async ({ room }) => ({ booking: `b-${room}` }),
    undo: async () => desk.did('undo'),
  });
  await desk.work([assistant({ tools: [book], rules: [] })]);
  const actions = [
    { id: 'a1', tool: 'book', arguments: { room: 'blue' } },
    { id: 'a2', tool: 'book', arguments: { room: { $ref: 'a1', path: 'booking' } } },
  ];
  desk.script([JSON.stringify({ actions }), 'Booked.']);
  const handle = await desk.rig.start({ agent: 'assistant', message: 'book', open: true });
  const { undoable = [] } = await desk.statusWhere(
    handle,
    ({ status }) => status === 'waiting_message',
  );
  expect(undoable.map(({ shown }) => shown)).toEqual(['book room blue', 'book room b-blue']);
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await desk.end(handle);
});

test('the request to undo an executed action says when that was executed', async () => {
  const book = defineTool({
    name: 'book',
    description: 'x',
    input: z.object({ room: z.string() }),
    effect: 'keyed',
    execute: async ({ room }) => room,
    undo: async () => desk.did('undo'),
  });
  await desk.work([assistant({ tools: [book], rules: [{ tool: 'book', then: 'ask' }] })]);
  const actions = [{ id: 'a1', tool: 'book', arguments: { room: 'blue' } }];
  desk.script([JSON.stringify({ actions }), 'Booked.']);
  const handle = await desk.rig.start({ agent: 'assistant', message: 'book', open: true });
  const planned = await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve' });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  await handle.executeUpdate(undoUpdate, { args: [{ call: 'a1' }] });
  const { pending } = await desk.statusWhere(handle, (now) => now.pending.length === 1);
  expect(pending[0]).toMatchObject({ call: 'node_execute_1.a1', undo: { turn: 1 } });
  expect(pending[0]?.undo?.step).toBeGreaterThan(0);
  expect(pending[0]?.undo?.at).toBeGreaterThanOrEqual(planned.pending[0]?.raisedAt ?? Infinity);
  await desk.decide(handle, { as: 'approve' });
  await desk.untilDone('undo');
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await desk.end(handle);
});
