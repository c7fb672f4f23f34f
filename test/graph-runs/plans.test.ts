import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { Model } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { decodeEvent } from '../../src/history/decode-event.js';
import { createStepEmitter } from '../../src/history/emit-steps.js';
import { createCalendar } from '../support/calendar.js';
import { expectKeptReplays } from '../support/replays.js';
import { askUpdate, closeUpdate } from '../../src/workflows/messages/definitions.js';
import { fixtureFiles, listed, stdioFixture } from '../support/mcp-agent.js';
import { seen } from '../support/mcp-fixture.js';
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

describe('a plan in one reply', () => {
  test('is executed in the order of its references, and reported', async () => {
    await desk.work([assistant()]);
    const plan = {
      actions: [
        { id: 'a1', tool: 'add_event', arguments: { title: 'one' } },
        {
          id: 'a2',
          tool: 'add_event',
          arguments: { title: ref('a1', 'data.id'), room: ref('a1', 'data.room') },
        },
      ],
    };
    desk.script([JSON.stringify(plan), 'Both are in.']);
    const { outcome } = await desk.run({ agent: 'assistant', message: 'add two' });
    expect(desk.done).toEqual(['add one', 'add e-one in blue']);
    expect(outcome).toMatchObject({
      status: 'completed',
      answer: 'Both are in.',
      output: {
        results: {
          a1: { ok: true, value: { data: { id: 'e-one', room: 'blue' } } },
          a2: { ok: true },
        },
      },
      steps: 3,
      toolCalls: 2,
    });
  });

  test('with nothing to do is the answer, without a second model call', async () => {
    await desk.work([assistant()]);
    desk.script([JSON.stringify({ actions: [], answer: 'You are free.' })]);
    const { outcome } = await desk.run({ agent: 'assistant', message: 'am I free?' });
    expect(outcome).toMatchObject({ answer: 'You are free.', steps: 1, toolCalls: 0 });
  });

  test('with a fault goes back to the planner with its reason', async () => {
    await desk.work([assistant()]);
    const wrong = { actions: [{ id: 'a1', tool: 'add_evnt', arguments: {} }] };
    const typed = { actions: [{ id: 'a1', tool: 'add_event', arguments: { title: 5 } }] };
    const right = { actions: [{ id: 'a1', tool: 'add_event', arguments: { title: 'x' } }] };
    desk.script([...[wrong, typed, right].map((one) => JSON.stringify(one)), 'Done.']);
    const { outcome, projection } = await desk.run({ agent: 'assistant', message: 'add x' });
    expect(outcome.answer).toBe('Done.');
    expect(desk.done).toEqual(['add x']);
    const reasons = projection.messages.flatMap((one) =>
      one.role === 'user' && one.origin === 'perdure' ? [one.text] : [],
    );
    expect(reasons[0]).toContain('unknown tool "add_evnt"');
    expect(reasons[1]).toContain('action a1');
  });

  test('with several faults is repaired by one request that lists them all', async () => {
    await desk.work([assistant()]);
    const wrong = {
      actions: [
        { id: 'a1', tool: 'add_evnt', arguments: {} },
        { id: 'a2', tool: 'add_event', arguments: { title: 5 } },
        { id: 'a3', tool: 'add_event', arguments: { title: ref('a9', 'data.id') } },
        { id: 'a4', tool: 'delete_event', arguments: {}, after: ['a8'] },
      ],
    };
    const right = { actions: [{ id: 'a1', tool: 'add_event', arguments: { title: 'x' } }] };
    desk.script([JSON.stringify(wrong), JSON.stringify(right), 'Done.']);
    const { outcome, projection } = await desk.run({ agent: 'assistant', message: 'add x' });
    // Two visits of the plan and the answer: one repair is paid for.
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Done.', steps: 3 });
    expect(desk.done).toEqual(['add x']);
    const reasons = projection.messages.flatMap((one) =>
      one.role === 'user' && one.origin === 'perdure' ? [one.text] : [],
    );
    const [repair = '', ...others] = reasons;
    expect(others.filter((text) => text.includes('action a'))).toEqual([]);
    for (const fault of ['unknown tool "add_evnt"', 'action a2', '"a9"', '"a8"']) {
      expect(repair).toContain(fault);
    }
  });
});

describe('a plan of what is no tool of the graph itself', () => {
  test('calls an agent after the confirmation, and passes on what it answered', async () => {
    const clerk = defineAgent({
      name: 'clerk',
      description: 'Finds rooms.',
      instructions: 'You find rooms.',
      model: 'clerk',
    });
    const clerkModel: Model = {
      call: async ({ messages }) => {
        desk.did('ask clerk');
        return replyText(`room for ${messages.at(-1)?.text}`);
      },
    };
    await desk.work([assistant({ agents: [clerk], rules: [{ tool: 'clerk', then: 'ask' }] })], {
      models: { clerk: clerkModel },
    });
    const actions = [
      { id: 'a1', tool: 'clerk', arguments: { message: 'ten people' } },
      { id: 'a2', tool: 'add_event', arguments: { title: { $ref: 'a1' } } },
    ];
    desk.script([JSON.stringify({ actions }), 'The room is booked.']);
    const { handle, requests } = await desk.asked({ agent: 'assistant', message: 'find one' });
    expect(requests).toMatchObject([{ kind: 'plan' }]);
    expect(requests[0]?.shown).toContain('ten people');
    expect(desk.done).toEqual([]);
    await desk.decide(handle, { as: 'approve' });
    const { outcome } = await desk.end(handle);
    expect(outcome).toMatchObject({
      status: 'completed',
      answer: 'The room is booked.',
      output: { results: { a1: { ok: true, value: 'room for ten people' }, a2: { ok: true } } },
    });
    expect(desk.done).toEqual(['ask clerk', 'add room for ten people']);
  });

  test('calls a tool of an MCP server after the confirmation, once', async () => {
    const files = await fixtureFiles([
      listed('find_room', {
        inputSchema: { type: 'object', properties: { size: { type: 'number' } } },
      }),
      listed('book_room', { inputSchema: { type: 'object', properties: { room: {} } } }),
    ]);
    const server = stdioFixture(files);
    await desk.work([assistant({ mcp: [server], rules: [{ tool: '*book_room', then: 'ask' }] })]);
    desk.script([
      { invoke_tool: { tool: 'desk__book_room', arguments: { room: 'blue' } } },
      'I will book the blue room.',
      'Booked.',
    ]);
    const { handle, requests } = await desk.asked({ agent: 'assistant', message: 'book it' });
    expect(requests).toMatchObject([{ kind: 'plan' }]);
    expect(requests[0]?.shown).toContain('blue');
    expect(seen(files.ledger)).toEqual([]);
    await desk.decide(handle, { as: 'approve' });
    const { outcome } = await desk.end(handle);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'Booked.' });
    expect(seen(files.ledger)).toMatchObject([{ tool: 'book_room', args: { room: 'blue' } }]);
  });
});

test('an executed action costs at most six events', async () => {
  await desk.work([assistant()]);
  const events = async (count: number): Promise<number> => {
    const actions = Array.from({ length: count }, (_, index) => ({
      id: `a${index}`,
      tool: 'add_event',
      arguments: { title: `t${index}` },
      ...(index > 0 && { after: [`a${index - 1}`] }),
    }));
    desk.script([JSON.stringify({ actions }), 'Done.']);
    const { history } = await desk.run({ agent: 'assistant', message: 'go' });
    return history.events?.length ?? 0;
  };
  const [one, four] = [await events(1), await events(4)];
  expect((four - one) / 3).toBeLessThanOrEqual(6);
});

test('an approval after references were resolved, and the end of the action, name what the tool gets', async () => {
  await desk.work([assistant()]);
  const plan = {
    actions: [
      { id: 'a1', tool: 'add_event', arguments: { title: 'one' } },
      { id: 'a2', tool: 'delete_event', arguments: { id: ref('a1', 'data.id') } },
    ],
  };
  desk.script([JSON.stringify(plan), 'Done.']);
  const handle = await desk.rig.start({ agent: 'assistant', message: 'tidy up' });
  await desk.statusWhere(handle, ({ pending }) => pending[0]?.kind === 'plan');
  await desk.decide(handle, { as: 'approve' });
  const { pending } = await desk.statusWhere(handle, (now) => now.pending[0]?.kind === 'approval');
  expect(pending).toMatchObject([{ arguments: '{"id":"e-one"}', summary: 'delete event e-one' }]);
  await desk.decide(handle, { as: 'approve' });
  await handle.result();
  expect(desk.done).toEqual(['add one', 'delete e-one']);
  const { events = [] } = await handle.fetchHistory();
  const steps = (events ?? []).map(decodeEvent).flatMap(createStepEmitter('run'));
  const named = steps.flatMap((step) =>
    step.type === 'action-changed' && step.action.state === 'done' ? [step.action.shown] : [],
  );
  expect(named).toEqual(['add "one"', 'delete event e-one']);
  expect(steps.filter(({ type }) => type === 'plan-made')).toHaveLength(1);
});

test('the events of a run show its plan, and the progress of each action', async () => {
  await desk.work([assistant()]);
  const actions = ['one', 'full'].map((title, index) => ({
    id: `a${index + 1}`,
    tool: 'add_event',
    arguments: { title },
    ...(index > 0 && { after: ['a1'] }),
  }));
  desk.script([JSON.stringify({ actions }), 'One is in.']);
  const { history } = await desk.run({ agent: 'assistant', message: 'add two' });
  const emit = createStepEmitter('run');
  const steps = (history.events ?? []).map(decodeEvent).flatMap((event) => emit(event));
  const shown = steps.flatMap((step) => {
    if (step.type === 'node-begun' || step.type === 'node-ended')
      return [`${step.type} ${step.node}`];
    if (step.type === 'plan-made') return [step.actions.map(({ id }) => id).join(', ')];
    if (step.type !== 'action-changed') return [];
    return [`${step.action.id} ${step.action.state}, ${step.done} of ${step.total}`];
  });
  // Each step of the plan is between the beginning and the end of its node.
  expect(shown).toEqual([
    'node-begun plan',
    'a1, a2',
    'node-ended plan',
    'node-ended needs_approval',
    'node-begun execute',
    'a1 running, 0 of 2',
    'a2 waiting, 0 of 2',
    'a1 done, 1 of 2',
    'a2 running, 1 of 2',
    'a2 failed, 1 of 2',
    'node-ended execute',
    'node-begun answer',
    'node-ended answer',
  ]);
});

describe('a failure in a plan', () => {
  const plan = JSON.stringify({
    actions: [
      { id: 'a1', tool: 'add_event', arguments: { title: 'full' } },
      { id: 'a2', tool: 'add_event', arguments: { title: 'behind' }, after: ['a1'] },
      { id: 'a3', tool: 'add_event', arguments: { title: ref('a1', 'data.id') } },
      { id: 'a4', tool: 'add_event', arguments: { title: 'beside' } },
    ],
  });

  test.each([
    { onFailedDependency: 'skip' as const, done: ['add beside', 'add full'] },
    { onFailedDependency: 'null' as const, done: ['add behind', 'add beside', 'add full'] },
  ])('with "$onFailedDependency"', async ({ onFailedDependency, done }) => {
    await desk.work([assistant({ onFailedDependency })]);
    desk.script([plan, 'The day is full.']);
    const { outcome } = await desk.run({ agent: 'assistant', message: 'add' });
    expect([...desk.done].toSorted()).toEqual(done);
    expect(outcome.output).toMatchObject({
      results: { a1: { ok: false }, a3: { ok: false }, a4: { ok: true } },
    });
  });
});

describe('planning by catalog', () => {
  test('executes reads and notes all other calls', async () => {
    await desk.work([assistant({ planning: 'catalog' })]);
    desk.script([
      { discover_tools: {} },
      { invoke_tool: { tool: 'list_events', arguments: {} } },
      [
        { invoke_tool: { tool: 'add_event', arguments: { title: 'one' } } },
        { invoke_tool: { tool: 'delete_event', arguments: { id: 'e1' } } },
        { invoke_tool: { tool: 'add_event', arguments: { title: ref('a1', 'data.id') } } },
        { invoke_tool: { tool: 'add_event', arguments: { title: ref('a7', 'data.id') } } },
      ],
      'I will add two and delete one.',
      'Done.',
    ]);
    const { handle, requests } = await desk.asked({ agent: 'assistant', message: 'go' });
    expect(desk.done).toEqual(['list']);
    expect(requests[0]?.shown).toContain('The plan has 3 actions');
    await desk.decide(handle, { as: 'approve' });
    const { outcome } = await desk.end(handle);
    expect(outcome.answer).toBe('Done.');
    expect([...desk.done].toSorted()).toEqual(['add e-one', 'add one', 'delete e1', 'list']);
    expect(outcome.output).toMatchObject({ plan: { done: [{ id: 'r1', tool: 'list_events' }] } });
  });

  test('accepts the answer of a planner that has only read', async () => {
    await desk.work([assistant({ planning: 'catalog' })]);
    desk.script([{ invoke_tool: { tool: 'list_events', arguments: {} } }, 'You have one event.']);
    const { outcome } = await desk.run({ agent: 'assistant', message: 'what is on?' });
    expect(outcome).toMatchObject({ answer: 'You have one event.', steps: 2 });
  });
});

test('a node before the plan may answer, so that nothing is planned', async () => {
  await desk.work([
    assistant().with({
      before: {
        plan: ({ message }) => (message.trim() === '' ? { answer: 'What shall I do?' } : {}),
      },
    }),
  ]);
  const { outcome } = await desk.run({ agent: 'assistant', input: { message: ' ' } });
  expect(outcome).toMatchObject({ answer: 'What shall I do?', steps: 1 });
});

test('a plan from outside is refused', async () => {
  await desk.work([assistant()]);
  const { outcome } = await desk.run({
    agent: 'assistant',
    input: { plan: { actions: [], done: [], asks: false } },
  });
  expect(outcome).toMatchObject({ status: 'failed', reason: 'input' });
  expect(outcome.error).toContain('only the node "plan"');
});

test('a hung action delays only the actions that depend on it', async () => {
  const hang = defineTool({
    name: 'hang',
    description: 'x',
    input: z.object({}),
    effect: 'read',
    execute: async (_, { signal }) =>
      await new Promise<string>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          desk.did('given up');
          reject(new Error('aborted'));
        });
      }),
  });
  await desk.work([assistant({ tools: [addEvent, hang], rules: [], timeout: '1.5 seconds' })]);
  const actions = [
    { id: 'a1', tool: 'hang', arguments: {} },
    { id: 'a2', tool: 'add_event', arguments: { title: 'behind' }, after: ['a1'] },
    { id: 'a3', tool: 'add_event', arguments: { title: 'one' } },
    { id: 'a4', tool: 'add_event', arguments: { title: ref('a3', 'data.id') } },
  ];
  desk.script([JSON.stringify({ actions }), 'One hung.']);
  const { outcome } = await desk.run({ agent: 'assistant', message: 'go' });
  expect(desk.done).toEqual(['add one', 'add e-one', 'given up']);
  expect(outcome.output).toMatchObject({
    results: {
      a1: { ok: false, error: { type: 'timeout' } },
      a2: { ok: false, error: { message: 'not executed: it needs a1, which has failed' } },
    },
  });
});

test('errors of a turn do not carry over to the next', async () => {
  const prompts: string[] = [];
  let lines: string[] = [];
  await desk.work([assistant()], {
    models: {
      script: {
        call: async ({ messages }) => {
          prompts.push(messages.at(-1)?.text ?? '');
          return {
            text: lines.shift() ?? '',
            calls: [],
            finish: 'stop',
            usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
          };
        },
      },
    },
  });
  lines = ['no plan', 'no plan', 'no plan', 'no plan', 'no plan', 'I could not plan that.'];
  const handle = await desk.rig.start({ agent: 'assistant', message: 'go', open: true });
  const failed = await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
  expect(failed.outcome?.answer).toBe('I could not plan that.');
  expect(failed.outcome?.output).toMatchObject({ error: { node: 'plan', type: 'invalid_plan' } });
  expect(prompts.at(-1)).toContain('Planning failed');
  lines = [
    JSON.stringify({ actions: [{ id: 'a1', tool: 'add_event', arguments: { title: 'x' } }] }),
    'Added.',
  ];
  await handle.executeUpdate(askUpdate, { args: [{ message: 'again' }] });
  const second = await desk.statusWhere(
    handle,
    ({ status, turn }) => status === 'waiting_message' && turn === 2,
  );
  expect(second.outcome?.answer).toBe('Added.');
  expect(second.outcome?.output).not.toHaveProperty('error');
  expect(prompts.at(-1)).not.toContain('Planning failed');
  await handle.executeUpdate(closeUpdate, { args: [{}] });
  await desk.end(handle);
});
