import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, expectTypeOf, inject, test } from 'vitest';
import type { Agent } from '../../src/agents/agent.js';
import { createClient, defineConfig } from '../../src/index.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import type { Outcome } from '../../src/core/transcript/outcome.js';
import { expectDelivered } from '../support/delivered.js';
import { clerk, clientOf } from '../support/clerk.js';
import { obedientModel } from '../support/conversation.js';
import { createMemoryRig } from '../support/memory-rig.js';
import { createRig, type Rig } from '../support/rig.js';
import { segmentsOf } from '../support/segments.js';

let rig: Rig;
let client: PerdureClient;
const start = { agent: 'clerk' };

async function openOn(given: Rig): Promise<void> {
  rig = given;
  client = await clientOf(rig);
  const agents = [clerk(), clerk('failing', { limits: { steps: 1 }, onLimit: 'fail' })];
  await rig.worker(agents, {
    models: { m: obedientModel() },
    segment: { steps: 2, bytes: 2_000_000 },
  });
}

beforeAll(async () => await openOn(await createMemoryRig()));
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

test('a run starts with a text alone, as `run` and `send` take it', async () => {
  const run = await client.start('clerk', 'one');
  expect(await client.result(run)).toMatchObject({ answer: 'done: one' });
  const open = await client.start(clerk(), 'two', { open: true, tags: ['a'] });
  expect(await client.result(open, { turn: 1 })).toMatchObject({ answer: 'done: two' });
  await client.close(open);
});

test('what is not a message, or not a run, is refused with what was given', async () => {
  const open = await client.start('clerk', 'one', { open: true });
  const wrong: readonly (readonly [unknown, string])[] = [
    [5, 'got 5'],
    [['a'], 'got ["a"]'],
    [null, 'got null'],
    [true, 'got true'],
    [() => 'a', 'got function'],
    [Promise.resolve('a'), 'got a promise; await it'],
    [Buffer.from('a'), 'got {"type":"Buffer","data":[97]}'],
  ];
  for (const [given, got] of wrong) {
    const text = `message: expected a text, or an object with its fields, ${got}`;
    await expect(client.run('clerk', given as never)).rejects.toThrow(text);
    await expect(client.start('clerk', given as never)).rejects.toThrow(text);
    await expect(client.send(open, given as never)).rejects.toThrow(text);
    const [task] =
      given === null ? [] : await client.batch('clerk', [given as never], { id: newId() }).all();
    if (task !== undefined) expect(task.outcome).toMatchObject({ reason: 'input', error: text });
    const run = `run: expected what \`start\` returns, or the id of a run, ${got}`;
    await expect(client.status(given as never)).rejects.toThrow(run);
    await expect(client.send(given as never, 'hi')).rejects.toThrow(run);
    const texts = client.text(given as never);
    await expect(texts[Symbol.asyncIterator]().next()).rejects.toThrow(run);
  }
  await expect(client.cancel('')).rejects.toThrow('the id of a run, got ""');
  await expect(client.cancel({} as never)).rejects.toThrow('the id of a run, got {}');
  await client.close(open);
});

test('a misspelled option of a client is refused with the nearest name', async () => {
  const refused = createClient({ taskQeue: 'x' } as never);
  await expect(refused).rejects.toMatchObject({ code: 'input' });
  await expect(refused).rejects.toThrow(
    'createClient: "taskQeue" is not an option; did you mean taskQueue?',
  );
  await expect(createClient({ config: {} } as never)).rejects.toThrow(
    'createClient: config: expected a configuration; make it with defineConfig({…})',
  );
});

const newId = (): string => `client-${randomUUID()}`;

describe('a task run', () => {
  test('is started and awaited, and its result can be read again', async () => {
    const run = await client.start(clerk(), { message: 'one', tags: ['a'] });
    expect(run.id).toMatch(/^clerk-\d{8}-[0-9a-f]{6}$/);
    const outcome = await client.result(run);
    expect(outcome).toMatchObject({ status: 'completed', answer: 'done: one', segments: 1 });
    expect(await client.result(run.id, { turn: 1 })).toEqual(outcome);
    expect(await client.status(run)).toMatchObject({ id: run.id, status: 'done', outcome });
    await expect(client.result(run, { turn: 2 })).rejects.toThrow(
      `has no turn 2; its last one is 1`,
    );
  });

  test('with several segments is followed to its end', async () => {
    const run = await client.start('clerk', { message: 'steps 7', id: newId() });
    expect(await client.result(run)).toMatchObject({
      status: 'completed',
      answer: 'done: steps 7',
      steps: 8,
      segments: 4,
    });
  });

  test('that fails or is canceled has an outcome too', async () => {
    const run = await client.start('failing', { message: 'steps 3' });
    expect(await client.result(run)).toMatchObject({ status: 'failed', reason: 'limit' });
    const open = await client.start('clerk', { open: true, id: newId() });
    await client.cancel(open);
    expect(await client.result(open)).toMatchObject({ status: 'cancelled', reason: 'cancelled' });
    await client.cancel(open);
    await expect(client.cancel(newId())).rejects.toThrow('there is no run');
  });

  test('that was terminated has an outcome that says so', async () => {
    const run = await client.start('clerk', { open: true, id: newId() });
    const waiting = client.result(run);
    await rig.client.workflow.getHandle(run.id).terminate('enough');
    const end = { status: 'failed', reason: 'terminated' };
    expect(await waiting).toMatchObject(end);
    expect(await client.result(run)).toMatchObject(end);
    const { status, reason, outcome } = await client.status(run);
    expect({ status, reason, outcome }).toMatchObject({ ...end, status: 'done', outcome: end });
  });

  test('with invalid input is refused before it starts, with field, value, and fix', async () => {
    await expect(client.start('clerk', {})).rejects.toThrow('message: expected a string, got none');
    const limits = { steps: 0 };
    await expect(client.start('clerk', { message: 'x', limits })).rejects.toThrow(
      'limits.steps: expected a positive whole number',
    );
    const high = { steps: 2 ** 53 };
    await expect(client.start('clerk', { message: 'x', limits: high })).rejects.toThrow(
      'limits.steps: expected at most 9007199254740991',
    );
    const id = newId();
    const open = { open: true, id };
    const first = await client.start('clerk', open);
    for (const again of [open, { ...open, reuseId: true }]) {
      await expect(client.start('clerk', again)).rejects.toThrow(`a run "${id}" already exists`);
    }
    await client.close(first);
    await client.result(first);
    await expect(client.start('clerk', open)).rejects.toThrow('already exists');
    const second = await client.start('clerk', { message: 'one', id, reuseId: true });
    expect(second.id).toBe(id);
    expect(await client.result(second)).toMatchObject({ reason: 'answer' });
    await expect(client.result(newId())).rejects.toThrow('there is no run');
  });
});

describe('a wait for a result', () => {
  test('ends with the signal, and the run continues', async () => {
    const run = await client.start('clerk', { open: true, id: newId() });
    const gone = new AbortController();
    const waiting = client.result(run, { signal: gone.signal });
    gone.abort(new Error('no longer'));
    await expect(waiting).rejects.toThrow('no longer');
    await expect.poll(async () => (await client.status(run)).status).toBe('waiting_message');
    await client.close(run);
  });
});

describe('an open run', () => {
  test('is started by its first message; a repeat of the message is the same turn', async () => {
    const id = newId();
    const first = { message: 'one', id: 'm1' };
    expect(await client.send(id, first, { start })).toEqual({
      turn: 1,
      delivered: true,
      messageId: 'm1',
    });
    expect(await client.send(id, first, { start })).toMatchObject({ turn: 1, messageId: 'm1' });
    expect(await client.send(id, 'two')).toMatchObject({ turn: 2 });
    expect(await client.result(id)).toMatchObject({ answer: 'done: two' });
    await client.close(id);
  });

  test('has results of turns in earlier segments and of the latest turn, but of no unknown turn', async () => {
    const id = newId();
    for (let turn = 1; turn <= 8; turn += 1) {
      const message = `message ${turn}`;
      expect(await client.send(id, { message, id: `m${turn}` }, { start })).toMatchObject({ turn });
    }
    expect(await client.result(id)).toMatchObject({ answer: 'done: message 8' });
    expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'done: message 1' });
    expect(await client.result(id, { turn: 7 })).toMatchObject({ answer: 'done: message 7' });
    await expect(client.result(id, { turn: 9 })).rejects.toThrow('no turn 9; its last one is 8');
    await expect(client.result(id, { turn: 0 })).rejects.toThrow(
      'turn: expected a whole number from 1, got 0',
    );
    // The run still knows a message of an earlier segment.
    expect(await client.send(id, { message: 'message 2', id: 'm2' })).toMatchObject({
      turn: 2,
      duplicate: true,
    });
    expect((await segmentsOf(rig.client, id)).length).toBeGreaterThan(2);
    // The server itself answers an update whose id it knows, whatever the update says.
    await expect(client.send(id, { message: 'another', id: 'm8' })).rejects.toThrow(
      'id: the run has received another message with this id, and this one was not delivered; give it an id of its own',
    );
    await client.close(id);
    expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'done: message 1' });
  });

  test('that has ended is not started again, neither by a new message nor by a repeat', async () => {
    const id = newId();
    await client.send(id, { message: 'one', id: 'm1' }, { start });
    await client.result(id);
    await client.close(id);
    await rig.client.workflow.getHandle(id).result();
    const { runId } = await client.status(id);
    await expect(client.send(id, 'two', { start })).rejects.toThrow(
      `run ${id} has ended: it accepts no more messages, and its id is not reused`,
    );
    const ended = { reason: 'run_ended', message: `run ${id} has ended` };
    await expect(client.send(id, 'two')).rejects.toMatchObject(ended);
    await expect(client.send(id, 'two', { start })).rejects.toMatchObject({ reason: 'run_ended' });
    // The server itself remembers the messages of the last segment.
    expect(await client.send(id, { message: 'one', id: 'm1' }, { start })).toMatchObject({
      turn: 1,
    });
    expect(await client.status(id)).toMatchObject({ runId, status: 'done', turn: 1 });
    expect(await client.result(id, { turn: 1 })).toMatchObject({ answer: 'done: one' });
  });

  test('is not started by an invalid message', async () => {
    const id = newId();
    await expect(client.send(id, ' ', { start })).rejects.toThrow('message: expected text');
    await expect(
      client.send(id, 'hi', { start: { agent: 'clerk', limits: { steps: -1 } } }),
    ).rejects.toThrow('limits.steps: expected a positive whole number');
    await expect(client.status(id)).rejects.toThrow('there is no run');
  });

  test('accepts concurrent messages, each in one turn', async () => {
    const id = newId();
    // The server has at most 10 updates in flight per run, and refuses the others at first.
    const ids = Array.from({ length: 30 }, (_, n) => `m${n}`);
    const sent = await Promise.all(
      [...ids, ...ids].map((messageId) =>
        expectDelivered(client.send(id, { message: `say ${messageId}`, id: messageId }, { start })),
      ),
    );
    const turnOf = new Map(sent.map(({ messageId, turn }) => [messageId, turn]));
    expect(new Set(turnOf.values()).size).toBe(30);
    for (const { messageId, turn } of sent) expect(turnOf.get(messageId)).toBe(turn);
    expect(await client.result(id, { turn: 30 })).toMatchObject({ status: 'completed' });
    const { messages } = await client.transcript(id);
    const asked = messages.filter(({ role }) => role === 'user').map(({ text }) => text);
    expect(asked.toSorted()).toEqual(ids.map((messageId) => `say ${messageId}`).toSorted());
    await client.close(id);
  });

  test('can be paused and resumed, and accepts limits', async () => {
    const id = newId();
    await client.send(id, 'one', { start });
    await client.result(id);
    await client.pause(id);
    await client.send(id, 'two');
    expect((await client.status(id)).status).toBe('paused');
    expect((await client.setLimits(id, { steps: 7 })).turn.steps).toBe(7);
    await client.resume(id);
    expect(await client.result(id)).toMatchObject({ answer: 'done: two' });
    await expect(client.cancel(id, { turn: true })).rejects.toThrow('no turn is under way');
    await client.close(id);
  });
});

describe('the client itself', () => {
  test('names the address if no server answers', async () => {
    await expect(createClient({ address: '127.0.0.1:1' })).rejects.toThrow(
      'no Temporal server answers at 127.0.0.1:1',
    );
  }, 30_000);

  test('uses an existing client and leaves it open', async () => {
    const own = await createClient({ client: rig.client, taskQueue: rig.taskQueue });
    const run = await own.start('clerk', { message: 'one' });
    await own.disconnect();
    expect(await rig.client.workflow.getHandle(run.id).result()).toMatchObject({
      status: 'completed',
    });
  });

  test('types outputs by the agent', async () => {
    const typed = clerk() as Agent<{ total: number }>;
    const run = await client.start(typed, { message: 'one' });
    const outcome = await client.result(run);
    expectTypeOf(outcome).toEqualTypeOf<Outcome<{ total: number }>>();
    expectTypeOf(outcome.output).toEqualTypeOf<{ total: number } | null>();
    expectTypeOf(await client.result(run.id)).toEqualTypeOf<Outcome>();
    expect(outcome.output).toBeNull();
  });
});

/** Lists and addresses are those of a server. */
describe('on a server', () => {
  const inMemory = { rig, client };

  beforeAll(async () => {
    Object.assign(inMemory, { rig, client });
    await openOn(await createRig());
  });
  afterAll(async () => {
    await client.disconnect();
    await rig.close();
    ({ rig, client } = inMemory);
  });

  describe('a client with a configuration', () => {
    const queue = () => ({ address: inject('temporalAddress'), taskQueue: rig.taskQueue });
    const nowhere = { address: '127.0.0.1:1', namespace: 'nowhere', taskQueue: 'nowhere' };

    test('uses its server, namespace, and task queue before those of the environment', async () => {
      const config = defineConfig({ agents: [clerk()], namespace: 'default', ...queue() });
      const env = {
        PERDURE_HOME: rig.home,
        TEMPORAL_ADDRESS: nowhere.address,
        TEMPORAL_NAMESPACE: nowhere.namespace,
        PERDURE_TASK_QUEUE: nowhere.taskQueue,
      };
      await using configured = await createClient({ config, env });
      const run = await configured.start('clerk', { message: 'one' });
      expect(await configured.result(run)).toMatchObject({ answer: 'done: one' });
    });

    test('uses its own options first', async () => {
      const config = defineConfig({ agents: [clerk()], ...nowhere });
      const own = { ...queue(), namespace: 'default', env: { PERDURE_HOME: rig.home } };
      await using configured = await createClient({ config, ...own });
      const run = await configured.start('clerk', { message: 'one' });
      expect(await configured.result(run)).toMatchObject({ answer: 'done: one' });
      const { namespace: _, ...rest } = own;
      await using elsewhere = await createClient({ config, ...rest });
      await expect(elsewhere.start('clerk', { message: 'one' })).rejects.toThrow(/nowhere/);
    });
  });

  describe('the list', () => {
    test('filters runs by agent and by status', async () => {
      const run = await client.start('clerk', { open: true, id: newId() });
      const ids = async (): Promise<readonly string[]> => {
        const { rows } = await client.list({ agent: 'clerk', status: 'waiting_message' });
        return rows.map(({ id }) => id);
      };
      await expect.poll(ids).toContain(run.id);
      await client.close(run);
      await expect.poll(ids).not.toContain(run.id);
      expect((await client.list({ agent: `nobody-${randomUUID()}` })).rows).toEqual([]);
    });
  });
});
