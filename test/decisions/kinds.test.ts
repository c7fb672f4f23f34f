import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { auditFacts } from '../../src/history/audit-acts.js';
import { decodeEvents } from '../../src/history/decode-event.js';
import { askPerson, wait } from '../../src/tools/built-in/workflow-tools.js';
import { revokeUpdate, undoUpdate } from '../../src/workflows/messages/definitions.js';
import { clientOf } from '../support/clerk.js';
import { createDesk, type Desk } from '../support/requests.js';
import { createMemoryRig } from '../support/memory-rig.js';

let desk: Desk;

const write = defineTool({
  name: 'write',
  description: 'Writes.',
  effect: 'keyed',
  repeat: 'allow',
  input: z.object({ to: z.string(), text: z.string() }),
  approval: 'always',
  execute: ({ to, text }) => {
    desk.did(`${to}: ${text}`);
    return `sent to ${to}`;
  },
  undo: ({ to, text }, result) => {
    desk.did(`undo ${to}: ${text} (${JSON.stringify(result)})`);
  },
});

const book = defineTool({
  name: 'book',
  description: 'Books.',
  effect: 'keyed',
  input: z.object({ room: z.string() }),
  execute: ({ room }) => {
    desk.did(`book ${room}`);
    return { room };
  },
  undo: ({ room }, result) => {
    if (room === 'gone') throw new Error('somebody else has it now');
    desk.did(`unbook ${room} ${JSON.stringify(result)}`);
  },
});

const refund = defineTool({
  name: 'refund',
  description: 'Refunds.',
  effect: 'keyed',
  repeat: 'allow',
  input: z.object({ euros: z.coerce.number().default(77_777) }),
  approval: 'always',
  execute: ({ euros }) => {
    desk.did(`refund ${euros}`);
    return 'ok';
  },
});

const locate = defineTool({
  name: 'locate',
  description: 'Asks the device where it is.',
  effect: 'read',
  input: z.object({}),
  output: z.object({ city: z.string() }),
});

const clerk = defineAgent({
  name: 'clerk',
  instructions: 'Help.',
  model: 'script',
  tools: [write, book, refund, locate, askPerson()],
});
const hasty = defineAgent({
  name: 'hasty',
  instructions: 'Help.',
  model: 'script',
  tools: [askPerson({ expires: 300 })],
});
const patient = defineAgent({
  name: 'patient',
  instructions: 'Wait.',
  model: 'script',
  tools: [wait()],
  rules: [{ tool: 'wait', then: 'ask' }],
});
const capped = defineAgent({
  name: 'capped',
  instructions: 'Help.',
  model: 'script',
  tools: [book],
  limits: { steps: 2 },
  onLimit: 'ask',
});
const fourEyes = defineAgent({
  name: 'four-eyes',
  description: 'Books.',
  instructions: 'Help.',
  model: 'script',
  tools: [book],
  rules: [{ tool: 'bo*', then: 'ask', deciders: 'not_requester' }],
});

const lead = { instructions: 'Lead.', model: 'script', description: 'Leads.' };
const middle = defineAgent({ ...lead, name: 'middle', agents: [fourEyes] });
const top = defineAgent({ ...lead, name: 'top', agents: [middle] });

beforeAll(async () => {
  desk = await createDesk(await createMemoryRig());
  await desk.work([clerk, hasty, patient, capped, fourEyes, middle, top]);
});
beforeEach(() => desk.reset());
afterAll(async () => await desk.close());

test('a question is answered by a person, and the model reads the answer', async () => {
  desk.script([{ ask_person: { question: 'Which room?', options: ['A', 'B'] } }, 'Booked B.']);
  const { handle, requests } = await desk.asked({ agent: 'clerk', message: 'book' });
  expect(requests).toMatchObject([
    {
      kind: 'question',
      question: 'Which room?',
      options: ['A', 'B'],
      decisions: ['answer', 'deny'],
    },
  ]);
  await desk.decide(handle, { as: 'answer', result: 'B' });
  expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Booked B.' });
  expect(desk.lastResults()).toEqual(['B']);
});

test('a request that is not answered in time is denied, and the model gets the reason', async () => {
  desk.script([{ ask_person: { question: 'Now?' } }, 'Nobody answered.']);
  const { outcome, handle } = await desk.run({ agent: 'hasty', message: 'go' });
  expect(outcome).toMatchObject({ answer: 'Nobody answered.' });
  expect(desk.lastResults()).toEqual([expect.stringContaining('no decision within')]);
  expect((await desk.statusWhere(handle, () => true)).decisions).toMatchObject([
    { request: 'r1', as: 'expired' },
  ]);
});

test('a wait cannot be changed to a time that is too far ahead', async () => {
  desk.script([{ wait: { seconds: 60 } }, 'Not waited.']);
  const { handle } = await desk.asked({ agent: 'patient', message: 'later' });
  await desk.decide(handle, { as: 'edit', arguments: { until: '2999-01-01T00:00:00Z' } });
  const refused = await desk.statusWhere(handle, ({ decisions }) => decisions?.length === 1);
  expect(refused.decisions?.[0]?.refused).toContain(
    'until 2999-01-01T00:00:00Z is more than 366 days ahead; give an earlier moment',
  );
  expect(refused.pending).toMatchObject([{ id: 'r1', kind: 'approval' }]);
  await desk.decide(handle, { as: 'deny' });
  expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Not waited.' });
});

test('a tool of the caller gets its result from the caller, checked by its schema', async () => {
  desk.script([{ locate: {} }, 'You are in Rome.']);
  const { handle } = await desk.asked({ agent: 'clerk', message: 'where am I?' });
  await desk.decide(handle, { as: 'answer', result: { town: 'Rome' } });
  const refused = await desk.statusWhere(handle, ({ decisions }) => decisions?.length === 1);
  expect(refused.decisions?.[0]?.refused).toContain('city');
  await desk.decide(handle, { as: 'answer', result: { city: 'Rome' } });
  expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'You are in Rome.' });
  expect(desk.lastResults()).toEqual(['{"city":"Rome"}']);
});

describe('a limit', () => {
  const lines = [
    { book: { room: '1' } },
    { book: { room: '2' } },
    { book: { room: '3' } },
    'Done.',
  ];

  test('can be raised by a person, and the turn continues', async () => {
    desk.script(lines);
    const { handle, requests } = await desk.asked({ agent: 'capped', message: 'go' });
    expect(requests).toMatchObject([
      { kind: 'limit', limit: { name: 'steps', used: 2, limit: 2 }, decisions: ['raise', 'stop'] },
    ]);
    await desk.decide(handle, { as: 'raise', arguments: { steps: 5 } });
    expect((await desk.end(handle)).outcome).toMatchObject({
      status: 'completed',
      answer: 'Done.',
      steps: 4,
    });
    expect(desk.done).toEqual(['book 1', 'book 2', 'book 3']);
  });

  test('that is not raised ends the turn with an answer', async () => {
    desk.script([{ book: { room: '1' } }, { book: { room: '2' } }, 'Two are booked.']);
    const { handle } = await desk.asked({ agent: 'capped', message: 'go' });
    await desk.decide(handle, { as: 'stop' });
    expect((await desk.end(handle)).outcome).toMatchObject({
      status: 'stopped',
      reason: 'steps',
      answer: 'Two are booked.',
    });
  });
});

describe('a grant', () => {
  test('covers later calls that match its pattern, is listed, and can be revoked', async () => {
    const to = (name: string, text: string) => ({ write: { to: name, text } });
    desk.script([to('ann', 'a'), to('ann', 'b'), to('bob', 'c'), to('ann', 'd'), 'Sent.']);
    const { handle } = await desk.asked({ agent: 'clerk', message: 'write' });
    const where = { op: 'eq', path: 'to', value: 'ann' } as const;
    await desk.decide(handle, { as: 'approve', by: 'eve', grant: { scope: 'tool', where } });
    // The second call to ann is covered, the one to bob is not.
    const asks = await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r2');
    expect(desk.done).toEqual(['ann: a', 'ann: b']);
    expect(asks.grants).toMatchObject([{ id: 'g1', tool: 'write', by: 'eve', request: 'r1' }]);
    expect(asks.grants?.[0]?.shown).toBe('write with arguments where to is "ann"');
    await handle.executeUpdate(revokeUpdate, { args: [{ grant: 'g1', by: 'eve' }] });
    await desk.decide(handle, { as: 'approve' });
    await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r3');
    await desk.decide(handle, { as: 'deny' });
    const { projection } = await desk.end(handle);
    const grants = projection.messages.flatMap((one) => (one.role === 'tool' ? [one.grant] : []));
    expect(grants).toEqual([undefined, 'g1', undefined, undefined]);
  });
});

test('a grant holds only for what the tool gets, and each request shows that', async () => {
  desk.script([
    { refund: { euros: 5 } },
    { refund: { euros: '6' } },
    { refund: { euros: '99999' } },
    { refund: {} },
    'Done.',
  ]);
  const { handle, requests } = await desk.asked({ agent: 'clerk', message: 'refund' });
  expect(requests[0]).not.toHaveProperty('parsed');
  const where = { not: { op: 'over', path: 'euros', value: 50 } } as const;
  await desk.decide(handle, { as: 'approve', grant: { scope: 'tool', where } });
  const second = await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r2');
  expect(desk.done).toEqual(['refund 5', 'refund 6']);
  expect(second.pending[0]).toMatchObject({
    arguments: '{"euros":"99999"}',
    parsed: '{"euros":99999}',
    shown: expect.stringContaining('euros: "99999" → 99999'),
  });
  await desk.decide(handle, { as: 'deny' });
  const third = await desk.statusWhere(handle, ({ pending }) => pending[0]?.id === 'r3');
  expect(third.pending[0]).toMatchObject({ arguments: '{}', parsed: '{"euros":77777}' });
  expect(third.pending[0]?.shown).toContain('euros: (not given) → 77777');
  await desk.decide(handle, { as: 'approve' });
  await desk.end(handle);
  expect(desk.done).toEqual(['refund 5', 'refund 6', 'refund 77777']);
});

test('the requester of a turn cannot approve its calls if the rules forbid it', async () => {
  desk.script([{ book: { room: '1' } }, 'Booked.']);
  const { handle, requests } = await desk.asked({ agent: 'four-eyes', message: 'go', by: 'ann' });
  expect(requests).toMatchObject([{ requester: 'ann', deciders: ['not_requester'] }]);
  await expect(desk.decide(handle, { as: 'approve', by: 'ann' })).rejects.toMatchObject({
    cause: expect.objectContaining({ details: ['not_a_decider'] }),
  });
  await desk.decide(handle, { as: 'approve', by: 'bob' });
  expect((await desk.end(handle)).outcome).toMatchObject({ answer: 'Booked.' });
});

/** Returns the steps of a run that are about an undo. */
async function undoSteps(run: string): Promise<readonly string[]> {
  const client = await clientOf(desk.rig);
  onTestFinished(async () => await client.disconnect());
  const found: string[] = [];
  for await (const step of client.events(run)) {
    if (step.type === 'undo-changed') found.push(`${step.call} ${step.state}`);
  }
  return found;
}

describe('undo', () => {
  test('reverts the last call, once, with what it returned, and informs the model', async () => {
    desk.script([{ book: { room: '1' } }, 'Booked.', 'I see.']);
    const handle = await desk.rig.start({ agent: 'clerk', message: 'book', open: true });
    const idle = await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
    expect(idle.undoable).toMatchObject([{ call: 'call_1_1_0', tool: 'book', shown: 'book 1' }]);
    const undo = { args: [{ by: 'ann' }] as [{ by: string }], updateId: 'u-1' };
    expect(await handle.executeUpdate(undoUpdate, undo)).toEqual({ undoing: 'call_1_1_0' });
    await desk.statusWhere(handle, ({ undoable }) => undoable?.[0]?.state === 'undone');
    expect(desk.done).toEqual(['book 1', 'unbook 1 {"room":"1"}']);
    await expect(handle.executeUpdate(undoUpdate, { args: [{}] })).rejects.toMatchObject({
      cause: expect.objectContaining({ message: expect.stringContaining('nothing can be undone') }),
    });
    await expect(
      handle.executeUpdate(undoUpdate, { args: [{ call: 'call_1_1_0' }] }),
    ).rejects.toMatchObject({
      cause: expect.objectContaining({ message: expect.stringContaining('undone already') }),
    });
    await handle.executeUpdate('ask', { args: [{ message: 'thanks' }] });
    const { projection, history } = await endOf(handle);
    const texts = projection.messages.map(({ text }) => text);
    expect(texts).toContain('[a person has undone call_1_1_0: book 1]');
    const acts = auditFacts({ id: 'x', segments: [decodeEvents('x', history.events)] });
    const line = { type: 'executed', call: 'call_1_1_0', tool: 'book', ok: true };
    expect(acts.filter(({ type }) => type === 'executed')).toEqual([
      expect.not.objectContaining({ undo: true }),
      expect.objectContaining({ ...line, undo: true }),
    ]);
    expect(desk.done).toHaveLength(2);
    expect(await undoSteps(handle.workflowId)).toEqual(['call_1_1_0 undoing', 'call_1_1_0 undone']);
  });

  test('waits for approval if a rule requires it, and reports what went wrong', async () => {
    desk.script([{ write: { to: 'ann', text: 'hi' } }, { book: { room: 'gone' } }, 'Done.']);
    const handle = await desk.rig.start({ agent: 'clerk', message: 'go', open: true });
    await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
    await desk.decide(handle, { as: 'approve' });
    await desk.statusWhere(handle, ({ status }) => status === 'waiting_message');
    await handle.executeUpdate(undoUpdate, { args: [{ call: 'call_1_2_0' }] });
    const failed = await desk.statusWhere(
      handle,
      ({ undoable }) => undoable?.[1]?.state === 'failed',
    );
    expect(failed.undoable?.[1]?.message).toContain('somebody else has it now');
    await handle.executeUpdate(undoUpdate, { args: [{ call: 'call_1_1_0' }] });
    const asked = await desk.statusWhere(handle, ({ pending }) => pending.length === 1);
    expect(asked.pending).toMatchObject([{ id: 'r2', decisions: ['approve', 'deny'] }]);
    expect(asked.pending[0]?.shown).toContain('undo write');
    // The reason of the turn before would hide for what the run waits.
    expect(asked).toMatchObject({ status: 'waiting_decision', reason: 'approval' });
    expect(asked.message).toContain('decide: ');
    await desk.decide(handle, { as: 'approve' });
    await desk.statusWhere(handle, ({ undoable }) => undoable?.[0]?.state === 'undone');
    expect(desk.done.at(-1)).toBe('undo ann: hi ("sent to ann")');
    await endOf(handle);
  });
});

async function endOf(handle: Parameters<Desk['end']>[0]): ReturnType<Desk['end']> {
  await desk.statusWhere(
    handle,
    ({ status, queued }) => status === 'waiting_message' && queued === 0,
  );
  await handle.executeUpdate('close', { args: [{}] });
  return await desk.end(handle);
}

describe('on a server, because it lists requests', () => {
  let inMemory = desk;

  beforeAll(async () => {
    inMemory = desk;
    desk = await createDesk();
    await desk.work([fourEyes, middle, top]);
  });
  afterAll(async () => {
    await desk.close();
    desk = inMemory;
  });

  test('no one for whom an agent was called may decide as another person', async () => {
    desk.script([
      { middle: { message: 'x' } },
      { 'four-eyes': { message: 'y' } },
      { book: { room: '7' } },
    ]);
    const client = await clientOf(desk.rig);
    const { id } = await client.start('top', { open: true });
    await client.pause(id);
    await client.send(id, { message: 'go', by: 'ann' });
    await client.send(id, { message: 'for me, too', by: 'bob', mode: 'steer' });
    await client.resume(id);
    const [found] = await vi.waitFor(
      async () => {
        const { requests } = await client.requests({ root: id });
        expect(requests).toHaveLength(1);
        return requests;
      },
      { timeout: 20_000, interval: 100 },
    );
    const { run = '', id: request = '', digest = '' } = found ?? {};
    const approve = async (by: string) =>
      await client.resolve(run, { request, digest, as: 'approve', by });
    await expect(approve('ann')).rejects.toMatchObject({ reason: 'not_a_decider' });
    await expect(approve('bob')).rejects.toMatchObject({ reason: 'not_a_decider' });
    await approve('cid');
    await client.result(id, { turn: 1 });
    expect(desk.done).toEqual(['book 7']);
    await client.close(id);
    await client.disconnect();
  });
});
