import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PerdureClient } from '../../src/client/client-types.js';
import { mapAsReady } from '../../src/client/batch.js';
import { obedientModel } from '../support/conversation.js';
import { clerk, clientOf } from '../support/clerk.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let client: PerdureClient;
const model = obedientModel();

beforeAll(async () => {
  rig = await createRig();
  client = await clientOf(rig);
  const failing = clerk('failing', { limits: { steps: 1 }, onLimit: 'fail' });
  await rig.worker([clerk(), failing], { models: { m: model } });
});
afterAll(async () => {
  await client.disconnect();
  await rig.close();
});

const newId = (): string => `batch-${randomUUID()}`;

describe('a batch', () => {
  test('returns outcomes in order, failures included', async () => {
    const tasks = ['one', 'steps 2', { message: '' }, { message: 'four', tags: ['x'] }];
    const results = await client.batch('failing', tasks, { id: newId(), atOnce: 2 }).all();
    expect(results.map(({ index, outcome }) => [index, outcome.status, outcome.reason])).toEqual([
      [0, 'completed', 'answer'],
      [1, 'failed', 'limit'],
      [2, 'failed', 'input'],
      [3, 'completed', 'answer'],
    ]);
    expect(results[2]?.outcome.error).toContain('message: expected text');
  });

  test('yields outcomes as they become ready', async () => {
    const batch = client.batch(clerk(), ['steps 6', 'two', 'three'], { id: newId() });
    const order: number[] = [];
    for await (const { index, outcome } of batch) {
      expect(outcome.status).toBe('completed');
      order.push(index);
    }
    expect(new Set(order)).toEqual(new Set([0, 1, 2]));
    expect(order.at(-1)).toBe(0);
  });

  test('that is started again finds its runs; a changed task is another run', async () => {
    const id = newId();
    const first = await client.batch('clerk', ['one', 'two'], { id }).all();
    const asked = model.requests.length;
    const again = await client.batch('clerk', ['one', 'two'], { id, atOnce: 1 }).all();
    expect(again).toEqual(first);
    expect(model.requests.length).toBe(asked);
    const [same, other] = await client.batch('clerk', ['one', 'new'], { id }).all();
    expect(same).toEqual(first[0]);
    expect(other?.id).not.toBe(first[1]?.id);
    expect(other?.outcome.answer).toBe('done: new');
    expect(model.requests.length).toBe(asked + 1);
  });

  test('whose reader leaves starts nothing more, and started runs continue', async () => {
    const id = newId();
    const tasks = Array.from({ length: 12 }, (_, n) => `task ${n}`);
    for await (const { outcome } of client.batch('clerk', tasks, { id, atOnce: 2 })) {
      expect(outcome.status).toBe('completed');
      break;
    }
    const started = async (): Promise<number> => {
      const query = `WorkflowId STARTS_WITH '${id}'`;
      let count = 0;
      for await (const { status } of rig.client.workflow.list({ query })) {
        count += status.name === 'COMPLETED' ? 1 : 1_000;
      }
      return count;
    };
    await expect.poll(started, { timeout: 10_000, interval: 200 }).toBeLessThan(10);
    expect((await client.batch('clerk', tasks, { id }).all()).length).toBe(12);
  });

  test('ends with the signal', async () => {
    const gone = new AbortController();
    const batch = client.batch('clerk', ['one', 'two'], { id: newId(), signal: gone.signal });
    gone.abort(new Error('no longer'));
    await expect(batch.all()).rejects.toThrow('no longer');
  });

  test('with invalid options is refused with the value and the fix', () => {
    expect(() => client.batch('clerk', [], { id: '' })).toThrow(
      'id: expected a string of 1 to 200 characters, got ""',
    );
    expect(() => client.batch('clerk', [], { id: 'x', atonce: 2 } as never)).toThrow(
      '"atonce" is not an option; did you mean atOnce?',
    );
    expect(() => client.batch('clerk', [], { id: 'x', atOnce: 0 })).toThrow(
      'atOnce: expected a whole number from 1, got 0',
    );
  });

  test('without tasks ends at once', async () => {
    expect(await client.batch('clerk', [], { id: newId() }).all()).toEqual([]);
  });
});

describe('mapAsReady', () => {
  test('never exceeds its limit, and is not delayed by a slow reader', async () => {
    let atWork = 0;
    let most = 0;
    let done = 0;
    const work = async (index: number): Promise<number> => {
      atWork += 1;
      most = Math.max(most, atWork);
      await new Promise((resolve) => setImmediate(resolve));
      atWork -= 1;
      done += 1;
      return index;
    };
    const results = mapAsReady(20, work, { atOnce: 3 });
    const { value: first } = await results.next();
    await expect.poll(() => done).toBe(20);
    const rest: number[] = [];
    for await (const index of results) rest.push(index);
    expect([first, ...rest].toSorted((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 20 }, (_, index) => index),
    );
    expect(most).toBe(3);
  });

  test('rejects with the first rejection, and starts no more work', async () => {
    const begun: number[] = [];
    const work = async (index: number): Promise<number> => {
      begun.push(index);
      if (index === 1) throw new Error('broken');
      return index;
    };
    const read = async (): Promise<void> => {
      for await (const _ of mapAsReady(100, work, { atOnce: 1 }));
    };
    await expect(read()).rejects.toThrow('broken');
    expect(begun).toEqual([0, 1]);
  });
});
