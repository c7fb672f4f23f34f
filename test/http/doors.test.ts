import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;

beforeAll(async () => {
  desk = await openHttpDesk(['ann', 'bob'], {
    principals: {
      ann: { rights: { '*': 'all' } },
      bob: { rights: { desk: ['start'] } },
    },
  });
});
afterAll(async () => {
  await desk.close();
});

test('a principal finds pages of what it may see, which say nothing of other runs', async () => {
  const prefix = `page-${randomUUID()}-`;
  const start = async (as: string, name: string): Promise<void> => {
    const body = { agent: 'other', message: 'x', id: prefix + name };
    if (as === 'ann') await desk.send('/v1/runs', { body });
    else await desk.send('/v1/runs', { as, body: { ...body, agent: 'desk', message: 'hello' } });
    await desk.client.result(prefix + name);
  };
  for (const name of ['hidden-1', 'own-1', 'hidden-2', 'own-2', 'hidden-3']) {
    await start(name.startsWith('own') ? 'bob' : 'ann', name);
  }
  const pages = async (as: string, under: string): Promise<string[][]> => {
    const found: string[][] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const query = new URLSearchParams({ idPrefix: prefix + under, limit: '1' });
      if (cursor !== '') query.set('cursor', cursor);
      const { body } = await desk.send(`/v1/runs?${query.toString()}`, { as });
      found.push(body.rows.map(({ id }: { id: string }) => id.slice(prefix.length)));
      cursor = body.cursor;
    }
    return found;
  };
  // Visibility may lag behind.
  await expect.poll(async () => (await pages('ann', '')).length).toBe(5);
  expect(await pages('bob', '')).toEqual([['own-2'], ['own-1']]);
  expect(await pages('bob', 'hidden')).toEqual([[]]);
  const guess = { agent: 'deks', message: 'x' };
  const refused = await desk.send('/v1/runs', { body: guess });
  expect(refused.body.error.message).toBe('agent: there is no agent "deks"');
});
