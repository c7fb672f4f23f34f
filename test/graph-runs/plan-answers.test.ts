import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { WorkflowHandle } from '@temporalio/client';
import type { WorkerInterceptors } from '@temporalio/worker';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { createCalendar } from '../support/calendar.js';
import { expectKeptReplays } from '../support/replays.js';
import { askUpdate, closeUpdate } from '../../src/workflows/messages/definitions.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;
beforeEach(async () => {
  desk = await createDesk(await createMemoryRig());
});
afterEach(async () => await desk.close());
afterAll(async () => await expectKeptReplays());

const { addEvent, assistant } = createCalendar(() => desk);

const ref = (id: string, path: string) => ({ $ref: id, path });

describe('a plan that deletes', () => {
  const plan = JSON.stringify({
    actions: [
      { id: 'a1', tool: 'add_event', arguments: { title: 'new' } },
      { id: 'a2', tool: 'delete_event', arguments: { id: 'e1' } },
      { id: 'a3', tool: 'add_event', arguments: { title: 'after' }, after: ['a2'] },
    ],
  });

  test('is shown as a whole, and only the shown calls are made after a yes', async () => {
    await desk.work([assistant()]);
    desk.script([plan, 'All done.']);
    const { handle, requests } = await desk.asked({ agent: 'assistant', message: 'clean up' });
    const [request] = requests;
    expect(request).toMatchObject({
      kind: 'plan',
      decisions: ['approve', 'some', 'deny', 'answer'],
      effects: { add_event: 'keyed' },
    });
    // No single effect stands for those of the actions.
    expect(request).not.toHaveProperty('effect');
    for (const words of ['add "new"', 'delete event e1', '! a2', 'add "after"', 'after a2']) {
      expect(request?.shown).toContain(words);
    }
    expect(desk.done).toEqual([]);
    await desk.decide(handle, { as: 'approve' });
    const { outcome } = await desk.end(handle);
    expect(outcome.answer).toBe('All done.');
    expect([...desk.done].toSorted()).toEqual(['add after', 'add new', 'delete e1']);
  });

  test.each([
    { says: 'no', done: [] },
    { says: 'some', done: ['add new'] },
    { says: 'some a1', done: ['add new'] },
    { says: 'all but a1', done: ['add after', 'delete e1'] },
    { says: 'nothing', done: [] },
  ])('does what is left after "$says"', async ({ says, done }) => {
    await desk.work([assistant()]);
    desk.script([plan, 'As you like.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'clean up' });
    await desk.decide(handle, { as: 'answer', result: says });
    const { outcome } = await desk.end(handle);
    expect(outcome.answer).toBe('As you like.');
    expect([...desk.done].toSorted()).toEqual(done);
  });

  test('is no answer of a run that is canceled while it waits for the plan', async () => {
    await desk.work([assistant()]);
    desk.script([plan]);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'clean up' });
    await handle.cancel();
    const { outcome } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'cancelled', answer: null });
    expect(desk.done).toEqual([]);
  });

  test('is not executed after a no in a run that an earlier version began', async () => {
    // Only a worker on a server has interceptors.
    await desk.close();
    desk = await createDesk();
    // Earlier versions pinned no `semantics`. There, a no executed what needed no approval.
    const older: NonNullable<WorkerInterceptors['activity']>[number] = () => ({
      inbound: {
        async execute(input, next) {
          const result: unknown = await next(input);
          if (typeof result !== 'object' || result === null) return result;
          return { ...result, semantics: undefined };
        },
      },
    });
    await desk.work([assistant()], { interceptors: { activity: [older] } });
    desk.script([plan, 'As you like.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'clean up' });
    await desk.decide(handle, { as: 'deny', note: 'too early' });
    const { history } = await desk.end(handle);
    expect(desk.done).toEqual([]);
    const markers = (history.events ?? []).flatMap(
      ({ markerRecordedEventAttributes: marker }) => marker?.markerName ?? [],
    );
    expect(markers).toEqual(['core_local_activity', 'core_patch']);
  });

  test('is revised after a change, and shown again', async () => {
    await desk.work([assistant()]);
    const other = JSON.stringify({
      actions: [{ id: 'a1', tool: 'delete_event', arguments: { id: 'e9' } }],
    });
    desk.script([plan, other, 'Deleted e9.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'clean up' });
    await desk.decide(handle, { as: 'answer', result: 'edit: only delete e9', by: 'ann' });
    const again = await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r2');
    expect(again.pending[0]?.shown).toContain('delete event e9');
    await desk.decide(handle, { as: 'answer', result: ' YES. ' });
    const { outcome, projection } = await desk.end(handle);
    expect(outcome.answer).toBe('Deleted e9.');
    expect(projection.state?.decisions).toMatchObject([
      { as: 'edit', by: 'ann' },
      { as: 'approve' },
    ]);
    const change = projection.messages.find(({ text }) => text === 'only delete e9');
    expect(change).toMatchObject({ role: 'user', by: 'ann' });
    expect(desk.done).toEqual(['delete e9']);
  });

  test('rejects an unclear answer, and stays open', async () => {
    await desk.work([assistant()]);
    desk.script([plan, 'Done.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'clean up' });
    await expect(desk.decide(handle, { as: 'answer', result: 'perhaps' })).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/^result: expected "yes", .*got "perhaps"/) },
    });
    const { pending, decisions = [] } = await desk.statusWhere(handle, () => true);
    expect([pending.length, decisions]).toEqual([1, []]);
    await desk.decide(handle, { as: 'deny', note: 'not today' });
    const { projection } = await desk.end(handle);
    expect(desk.done).toEqual([]);
    expect(projection.messages.map(({ text }) => text).join('\n')).toContain('noted: not today');
  });

  test('raises a request for a call whose arguments were unknown when the plan was confirmed', async () => {
    await desk.work([assistant()]);
    const late = JSON.stringify({
      actions: [
        { id: 'a1', tool: 'add_event', arguments: { title: 'new' } },
        { id: 'a2', tool: 'delete_event', arguments: { id: ref('a1', 'data.id') } },
      ],
    });
    desk.script([late, 'Done.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'replace' });
    await desk.decide(handle, { as: 'approve' });
    const status = await desk.statusWhere(handle, ({ pending }) => pending[0]?.kind === 'approval');
    expect(status.pending[0]).toMatchObject({ tool: 'delete_event', arguments: '{"id":"e-new"}' });
    expect(desk.done).toEqual(['add new']);
    await desk.decide(handle, { as: 'approve' });
    await desk.end(handle);
    expect(desk.done).toEqual(['add new', 'delete e-new']);
  });
});

describe('a call of an agent', () => {
  const clerk = defineAgent({
    name: 'clerk',
    description: 'Does errands.',
    instructions: 'x',
    model: 'script',
  });
  const rules = [{ tool: 'clerk', then: 'ask' }] as const;
  const plan = (message: object | string) =>
    JSON.stringify({
      actions: [
        { id: 'a1', tool: 'add_event', arguments: { title: 'new' } },
        { id: 'a2', tool: 'clerk', arguments: { message }, after: ['a1'] },
      ],
    });

  test('raises a request if its arguments were unknown when the plan was confirmed', async () => {
    await desk.work([assistant({ agents: [clerk], rules })]);
    desk.script([plan(ref('a1', 'data.id')), 'Errand done.', 'Done.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'go' });
    await desk.decide(handle, { as: 'approve' });
    const status = await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r2');
    expect(status.pending[0]).toMatchObject({
      kind: 'approval',
      tool: 'clerk',
      arguments: '{"message":"e-new"}',
    });
    await desk.decide(handle, { as: 'approve' });
    expect((await desk.end(handle)).outcome).toMatchObject({
      answer: 'Done.',
      output: { results: { a2: { ok: true, value: 'Errand done.' } } },
    });
  });

  test('and one of the caller are asked about, too, before anyone is asked to execute them', async () => {
    const open = defineTool({
      name: 'open_page',
      description: 'Opens a page at the caller.',
      input: z.object({ page: z.string() }),
      effect: 'keyed',
    });
    await desk.work([
      assistant({ tools: [addEvent, open], rules: [{ tool: 'open_page', then: 'ask' }] }),
    ]);
    const page = ref('a1', 'data.id');
    desk.script([
      JSON.stringify({
        actions: [
          { id: 'a1', tool: 'add_event', arguments: { title: 'new' } },
          { id: 'a2', tool: 'open_page', arguments: { page } },
        ],
      }),
      'Done.',
    ]);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'go' });
    await desk.decide(handle, { as: 'approve' });
    const asked = async (id: string) =>
      (await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === id)).pending;
    expect(await asked('r2')).toMatchObject([{ kind: 'approval', arguments: '{"page":"e-new"}' }]);
    await desk.decide(handle, { as: 'approve' });
    expect(await asked('r3')).toMatchObject([{ kind: 'client_tool', tool: 'open_page' }]);
    await desk.decide(handle, { as: 'answer', result: 'opened' });
    expect((await desk.end(handle)).outcome).toMatchObject({
      output: { results: { a2: { ok: true, value: 'opened' } } },
    });
  });

  test('is not made if the agent denies it since it was approved', async () => {
    await desk.work([assistant({ agents: [clerk], rules })]);
    desk.script([plan('now'), 'Not done.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'go' });
    await desk.rig.stopWorkers();
    await desk.work([assistant({ agents: [clerk], rules: [{ tool: 'clerk', then: 'deny' }] })]);
    await desk.decide(handle, { as: 'approve' });
    expect((await desk.end(handle)).outcome).toMatchObject({
      answer: 'Not done.',
      output: { results: { a2: { ok: false, error: { type: 'denied' } } } },
    });
  });
});

describe('a message', () => {
  const plan = JSON.stringify({
    actions: [
      { id: 'a1', tool: 'add_event', arguments: { title: 'new' } },
      { id: 'a2', tool: 'delete_event', arguments: { id: 'e1' } },
    ],
  });
  const send = async (handle: WorkflowHandle, message: string) =>
    await handle.executeUpdate(askUpdate, { args: [{ message }] });

  test('answers a plan, and is part of the turn', async () => {
    await desk.work([assistant()]);
    desk.script([plan, 'Done.', JSON.stringify({ actions: [], answer: 'Bye.' })]);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'go', open: true });
    await expect(send(handle, 'what is on tomorrow?')).rejects.toMatchObject({
      cause: { message: expect.stringContaining('the run waits for an answer to request r1') },
    });
    expect(await send(handle, ' Yes! ')).toMatchObject({ turn: 1 });
    await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
    expect([...desk.done].toSorted()).toEqual(['add new', 'delete e1']);
    expect(await send(handle, 'yes')).toMatchObject({ turn: 2 });
    await handle.executeUpdate(closeUpdate, { args: [{}] });
    const { projection } = await desk.end(handle);
    const lines = projection.messages.flatMap((one) =>
      one.role === 'user' && one.origin === undefined ? [`${one.turn}: ${one.text}`] : [],
    );
    expect(lines).toEqual(['1: go', '1:  Yes! ', '2: yes']);
  });

  test('of a client without answers decides nothing, and says so', async () => {
    await desk.work([assistant()]);
    desk.script([plan, 'Left alone.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'go' });
    const [mute, other] = await Promise.all([
      clientOf(desk.rig, { answers: false }),
      clientOf(desk.rig),
    ]);
    const run = handle.workflowId;
    // Visibility, from which `requests` reads, lags behind the history.
    const [{ id: request, digest } = { id: '', digest: '' }] = (await other.status(run)).pending;
    const answers = { request, digest };
    await expect(mute.send(run, 'yes')).rejects.toMatchObject({ reason: 'not_a_decider' });
    for (const given of [answers, true]) {
      await expect(mute.send(run, { message: 'yes', answers: given })).rejects.toThrow(
        'answers: expected none, because this client was created with answers: false',
      );
    }
    // Of many people who decide at the same time, the first one wins.
    const tries = await Promise.allSettled(
      Array.from({ length: 32 }, async (_, index) =>
        index % 2 === 0
          ? await other.send(run, { message: 'no', answers, by: `person ${index}` })
          : await other.resolve(run, { ...answers, as: 'deny', by: `person ${index}` }),
      ),
    );
    const won = tries.filter(({ status }) => status === 'fulfilled');
    expect(won).toHaveLength(1);
    const { outcome, projection } = await desk.end(handle);
    expect(outcome.answer).toBe('Left alone.');
    expect(projection.state?.decisions).toHaveLength(1);
    expect(desk.done).toEqual([]);
    await Promise.all([mute.disconnect(), other.disconnect()]);
  });

  test('with a change revises the plan', async () => {
    await desk.work([assistant()]);
    const other = JSON.stringify({
      actions: [{ id: 'a1', tool: 'add_event', arguments: { title: 'only' } }],
    });
    desk.script([plan, other, 'Added.']);
    const { handle } = await desk.asked({ agent: 'assistant', message: 'go' });
    await send(handle, 'edit: delete nothing');
    expect((await desk.end(handle)).outcome.answer).toBe('Added.');
    expect(desk.done).toEqual(['add only']);
  });
});

test.each([500, 5_000])(
  'a yes covers arguments that were shown, but the rules apply again: %i',
  async (amount) => {
    const balance = defineTool({
      name: 'balance',
      description: 'x',
      input: z.object({}),
      effect: 'read',
      execute: async () => ({ euros: amount }),
    });
    const pay = defineTool({
      name: 'pay',
      description: 'x',
      input: z.object({ euros: z.number() }),
      effect: 'keyed',
      execute: async ({ euros }) => desk.did(`pay ${euros}`),
    });
    await desk.work([
      assistant({
        planning: 'catalog',
        tools: [balance, pay],
        rules: [
          { tool: 'pay', then: 'ask' },
          { tool: 'pay', where: { op: 'over', path: 'euros', value: 1_000 }, then: 'deny' },
        ],
      }),
    ]);
    desk.script([
      { invoke_tool: { tool: 'balance', arguments: {} } },
      { invoke_tool: { tool: 'pay', arguments: { euros: ref('r1', 'euros') } } },
      'I will pay it all out.',
      'That is too much to pay.',
    ]);
    const { handle, requests } = await desk.asked({ agent: 'assistant', message: 'pay it out' });
    expect(requests[0]?.shown).toContain(`pay {"euros":${amount}}`);
    await desk.decide(handle, { as: 'approve' });
    const { outcome, projection } = await desk.end(handle);
    expect(projection.state?.requests).toBe(1);
    expect(desk.done).toEqual(amount === 500 ? ['pay 500'] : []);
    if (amount === 500) return;
    expect(outcome).toMatchObject({
      answer: 'That is too much to pay.',
      output: { results: { a1: { ok: false, error: { type: 'denied' } } } },
    });
  },
);
