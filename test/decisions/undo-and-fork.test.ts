import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { transcriptQuery, undoUpdate } from '../../src/workflows/messages/definitions.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { createDesk, type Desk } from '../support/requests.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());

test('a fork tells its model once that a call was undone that it has copied', async () => {
  const book = defineTool({
    name: 'book',
    description: 'Books.',
    effect: 'keyed',
    input: z.object({}),
    execute: () => 'booked',
    undo: () => desk.did('undone'),
  });
  await desk.work([
    defineAgent({ name: 'clerk', instructions: 'x', model: 'script', tools: [book] }),
  ]);
  desk.script([{ book: {} }, 'Booked.', 'No.', 'No.', 'You are welcome.', 'No.', 'Hello.']);
  const handle = await desk.rig.start({ agent: 'clerk', message: 'book', open: true });
  const rest = async (turn: number) =>
    await desk.statusWhere(handle, (run) => run.status === 'waiting_message' && run.turn === turn);
  await rest(1);
  await handle.executeUpdate(undoUpdate, { args: [{}] });
  await desk.statusWhere(handle, ({ undoable }) => undoable?.[0]?.state === 'undone');
  const note = '[a person has undone call_1_1_0: book]';
  const notesOf = async (fork: { readonly run: string; readonly at?: number }) => {
    const forked = await desk.rig.start({ agent: 'clerk', message: 'Is it booked?', fork });
    await desk.end(forked);
    const { messages } = await forked.query(transcriptQuery);
    return messages.filter(({ text }) => text === note).length;
  };
  const run = handle.workflowId;
  // The run has not told its own model yet.
  expect(await notesOf({ run })).toBe(1);
  await handle.executeUpdate('ask', { args: [{ message: 'Thanks.' }] });
  await rest(2);
  expect(await notesOf({ run })).toBe(0);
  // The copied part ends before the run told its own model.
  expect(await notesOf({ run, at: 4 })).toBe(1);
  // The copied part ends before the call.
  expect(await notesOf({ run, at: 1 })).toBe(0);
  await handle.cancel();
  await desk.end(handle);
});
