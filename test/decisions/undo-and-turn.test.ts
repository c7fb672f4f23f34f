import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { cancelTurnUpdate, undoUpdate } from '../../src/workflows/messages/definitions.js';
import { gate } from '../support/gate.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { createDesk, type Desk } from '../support/requests.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());

const given = { description: 'Does.', input: z.object({}) };

/** A tool that works until it is canceled. */
const hang = defineTool({
  ...given,
  name: 'hang',
  effect: 'read',
  execute: async (_, { signal }) => {
    desk.did('hang');
    await new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')));
    });
  },
});

test('a canceled turn ends before an undo that is being executed, which goes on', async () => {
  const undoing = gate();
  const book = defineTool({
    ...given,
    name: 'book',
    effect: 'keyed',
    execute: () => 'booked',
    undo: async (_input, _result, { signal }) => {
      desk.did('undo');
      await undoing.wait();
      desk.did(signal.aborted ? 'aborted' : 'undone');
    },
  });
  await desk.work([
    defineAgent({ name: 'clerk', instructions: 'x', model: 'script', tools: [book, hang] }),
  ]);
  desk.script([{ book: {} }, { hang: {} }]);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
  await desk.untilDone('hang');
  await handle.executeUpdate(undoUpdate, { args: [{}] });
  await desk.untilDone('undo');
  await handle.executeUpdate(cancelTurnUpdate, { args: [{}] });
  const { undoable } = await desk.statusWhere(
    handle,
    ({ outcome }) => outcome?.status === 'cancelled',
  );
  expect(undoable).toMatchObject([{ state: 'undoing' }]);
  undoing.release();
  const over = await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  expect(over.undoable).toMatchObject([{ state: 'undone' }]);
  expect(desk.done).toEqual(['hang', 'undo', 'undone']);
});

test('a canceled turn does not refuse a decision about an undo that is being checked', async () => {
  const checking = gate();
  const book = defineTool({
    ...given,
    name: 'book',
    effect: 'keyed',
    approval: 'always',
    execute: () => 'booked',
    undo: () => desk.did('undone'),
  });
  await desk.work(
    [defineAgent({ name: 'clerk', instructions: 'x', model: 'script', tools: [book, hang] })],
    {
      mayDecide: async () => {
        if (!desk.done.includes('hang')) return true;
        desk.did('check');
        await checking.wait();
        return true;
      },
    },
  );
  desk.script([{ book: {} }, { hang: {} }]);
  const { handle } = await desk.asked({ agent: 'clerk', message: 'go', open: true });
  await desk.decide(handle, { as: 'approve', by: 'ann' });
  await desk.untilDone('hang');
  await handle.executeUpdate(undoUpdate, { args: [{}] });
  await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
  await desk.decide(handle, { as: 'approve', by: 'ann' });
  await desk.untilDone('check');
  await handle.executeUpdate(cancelTurnUpdate, { args: [{}] });
  await desk.statusWhere(handle, ({ outcome }) => outcome?.status === 'cancelled');
  checking.release();
  await desk.untilDone('undone');
  const over = await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  expect(over.undoable).toMatchObject([{ state: 'undone' }]);
});
