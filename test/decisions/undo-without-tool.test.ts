import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { undoUpdate } from '../../src/workflows/messages/definitions.js';
import { createDesk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

test('a call whose tool a newer version of the agent lacks is not undone, and the run continues', async () => {
  const desk = await createDesk(await createMemoryRig());
  const book = defineTool({
    name: 'book',
    description: 'Books.',
    effect: 'keyed',
    input: z.object({}),
    execute: () => 'booked',
    undo: () => desk.did('unbook'),
  });
  const options = { name: 'clerk', instructions: 'Help.', model: 'script' };
  await desk.work([defineAgent({ ...options, tools: [book] })]);
  desk.script([{ book: {} }, 'Booked.', 'Hello.', 'Bye.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'book', open: true });
  await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  await desk.rig.stopWorkers();
  await desk.work([defineAgent(options)]);
  await handle.executeUpdate('ask', { args: [{ message: 'hello', refresh: true }] });
  await desk.statusWhere(handle, ({ status, turn }) => status === 'waiting_message' && turn === 2);
  await expect(handle.executeUpdate(undoUpdate, { args: [{}] })).rejects.toMatchObject({
    cause: { message: expect.stringContaining('the agent no longer has tool "book"') },
  });
  await handle.executeUpdate('ask', { args: [{ message: 'bye' }] });
  await desk.statusWhere(handle, ({ status, turn }) => status === 'waiting_message' && turn === 3);
  expect(desk.done).toEqual([]);
  await desk.close();
});
