import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startService, type Service } from '../../examples/assistant/service.js';
import type { JsonObject } from '../../src/core/text/json.js';
import type { RunStatus } from '../../src/core/state/status.js';
import { replyCalls, replyText } from '../../src/testing/replies.js';
import { askUpdate, closeUpdate } from '../../src/workflows/messages/definitions.js';
import { startExample, type Example } from '../support/example.js';

let assistant: Example;
let service: Service;
beforeAll(async () => {
  service = await startService();
  process.env['ASSISTANT_SERVICE'] = service.url;
  assistant = await startExample('assistant');
});
afterAll(async () => {
  await assistant.close();
  await service.close();
  delete process.env['ASSISTANT_SERVICE'];
});

const rows = async (table: string): Promise<readonly { id: string; title: string }[]> => {
  const response = await fetch(`${service.url}/${table}`);
  return (await response.json()) as readonly { id: string; title: string }[];
};
const titles = async (table: string): Promise<readonly string[]> =>
  (await rows(table)).map(({ title }) => title).toSorted();

const invoke = (tool: string, given: JsonObject) =>
  ({ name: 'invoke_tool', arguments: { tool, arguments: given } }) as const;
const add = (title: string) =>
  invoke('add_calendar_event', { title, start: '2026-11-24T12:00:00' });
const remove = (id: string) => invoke('delete_calendar_event', { event_id: id });

async function reached(handle: WorkflowHandle, name: RunStatus['status'], turn: number) {
  return await vi.waitFor(
    async () => {
      const status = await handle.query<RunStatus>('status');
      if (status.status !== name || status.turn !== turn) throw new Error(JSON.stringify(status));
      return status;
    },
    { timeout: 30_000, interval: 50 },
  );
}

test('a conversation of five turns, with a partial approval, a question, and a correction', async () => {
  const { rig, stub } = assistant;
  const say = async (handle: WorkflowHandle, message: string) =>
    await handle.executeUpdate(askUpdate, { args: [{ message }] });

  // The first turn needs no approval.
  stub.script(
    replyCalls([{ name: 'discover_tools', arguments: { categories: ['calendar'] } }]),
    replyCalls([add('dentist'), add('standup')]),
    replyText('I will add two events.'),
    replyText('Dentist and standup are in.'),
  );
  const handle = await rig.start({
    agent: 'assistant',
    open: true,
    message: 'Add dentist and standup.',
  });
  expect((await reached(handle, 'waiting_message', 1)).outcome?.answer).toBe(
    'Dentist and standup are in.',
  );
  expect(await titles('events')).toEqual(['dentist', 'standup']);

  // A mixed plan, of which the user approves only a part.
  stub.script(
    replyCalls([invoke('list_calendar_events', {})]),
    replyCalls([add('lunch'), remove('e1'), remove('e2')]),
    replyText('Lunch in, both others out.'),
    replyText('Lunch is in, and the standup is gone.'),
  );
  await say(handle, 'Lunch instead of both.');
  const asked = await reached(handle, 'waiting_decision', 2);
  expect(asked.pending[0]?.shown).toContain('add "lunch" on 2026-11-24T12:00:00');
  await say(handle, 'all but a2');
  await reached(handle, 'waiting_message', 2);
  expect(await titles('events')).toEqual(['dentist', 'lunch']);

  // A question in between plans nothing, and the planner's text is the answer.
  stub.script(
    replyCalls([invoke('list_calendar_events', {})]),
    replyText('The dentist and lunch.'),
  );
  await say(handle, 'What is on?');
  expect((await reached(handle, 'waiting_message', 3)).outcome?.answer).toBe(
    'The dentist and lunch.',
  );

  // A correction: the plan is revised, and shown again.
  stub.script(
    replyCalls([remove('e3')]),
    replyText('Lunch goes.'),
    replyCalls([remove('e1')]),
    replyText('The dentist goes.'),
    replyText('The dentist is gone.'),
  );
  await say(handle, 'Delete it.');
  await reached(handle, 'waiting_decision', 4);
  await say(handle, 'edit: the dentist, not lunch');
  await vi.waitFor(
    async () => {
      const { pending } = await handle.query<RunStatus>('status');
      expect(pending[0]?.shown).toContain('delete event e1');
    },
    { timeout: 30_000, interval: 50 },
  );
  await say(handle, 'yes');
  await reached(handle, 'waiting_message', 4);
  expect(await titles('events')).toEqual(['lunch']);

  // A tool that is not connected fails as a value, and the model reports it.
  stub.script(
    replyCalls([
      invoke('create_task', { title: 'call Ann' }),
      invoke('mark_task_complete', { task_id: 't9' }),
    ]),
    replyText('A task, and one marked.'),
    replyText('The task is there; marking tasks is not connected.'),
  );
  await say(handle, 'Remind me to call Ann, and mark t9.');
  const last = await reached(handle, 'waiting_message', 5);
  expect(last.outcome?.output).toMatchObject({
    results: { a1: { ok: true, value: { id: 't1' } }, a2: { ok: false } },
  });
  expect(await titles('tasks')).toEqual(['call Ann']);
  stub.assertConsumed();
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await rig.end(handle);
});

test('a message that is too long is answered before any model call', async () => {
  const { outcome } = await assistant.rig.run({
    agent: 'assistant',
    message: 'x'.repeat(5_001),
  });
  expect(outcome).toMatchObject({
    answer: 'Please keep it under 5000 characters.',
    usage: { inputTokens: 0 },
  });
});
