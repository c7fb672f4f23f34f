import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditRuns } from '../../src/client/audit.js';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

const guarded = defineAgent({
  name: 'guarded',
  instructions: 'x',
  model: 'm',
  tools: [
    defineTool({
      name: 'pay',
      description: 'pays',
      input: z.object({ euros: z.number() }),
      effect: 'read',
      execute: async ({ euros }) => `paid ${euros}`,
    }),
  ],
  rules: [{ tool: 'pay', then: 'ask', deciders: ['group:ops'] }],
});

let desk: HttpDesk;

const path = (id: string, rest = ''): string => `/v1/runs/${encodeURIComponent(id)}${rest}`;

beforeAll(async () => {
  const serve = {
    principals: {
      ann: { rights: { '*': 'all' }, groups: ['ops'] },
      bob: { rights: { desk: ['start'], guarded: 'all' } },
    },
  } as const;
  desk = await openHttpDesk(['ann', 'bob'], serve, { agents: [guarded] });
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

test('a principal is recorded as verified, and a group decides only by its verified members', async () => {
  const body = { agent: 'guarded', message: 'pay 7', open: true };
  const { id } = (await desk.send('/v1/runs', { as: 'bob', body })).body;
  await expect.poll(async () => (await desk.send(path(id))).body.pending?.length).toBe(1);
  const { body: request } = await desk.send(path(id, '/requests/r1'));
  expect(request).toMatchObject({ requester: 'bob', requesterDoor: 'http' });
  expect(request.view.fields).toContainEqual(['asked by', 'bob (verified by http)']);
  const decision = { request: 'r1', digest: request.digest, as: 'approve' } as const;
  const send = async (as: string) =>
    await desk.send(path(id, '/decisions'), { as, body: { decisions: [decision] } });
  expect((await send('bob')).body.error).toMatchObject({ reason: 'not_a_decider' });
  for (const by of ['ann', 'group:ops']) {
    const claimed = desk.client.resolve(id, decision, { by });
    await expect(claimed).rejects.toMatchObject({ reason: 'not_a_decider' });
  }
  expect((await send('ann')).status).toBe(200);
  await desk.client.result(id, { turn: 1 });
  await desk.client.send(id, { message: 'claimed', door: 'http' } as { message: string }, {
    by: 'ann',
  });
  await desk.client.result(id, { turn: 2 });
  const { decisions } = await desk.client.status(id);
  expect(decisions).toMatchObject([{ as: 'approve', by: 'ann', door: 'http' }]);
  const { messages } = (await desk.send(path(id, '/transcript'))).body;
  const users = messages.filter(({ role }: { role: string }) => role === 'user');
  expect(users).toMatchObject([{ by: 'bob', door: 'http' }, { by: 'ann' }]);
  expect(users[1]).not.toHaveProperty('door');
  const facts = await auditRuns(desk.client, [id]);
  expect(facts.map(({ type, by, door }) => [type, by, door])).toEqual(
    expect.arrayContaining([
      ['started', 'bob', 'http'],
      ['sent', 'bob', 'http'],
      ['decided', 'ann', 'http'],
      ['sent', 'ann', undefined],
    ]),
  );
  await desk.client.close(id);
});

test('a message with the id of another sender is another message', async () => {
  const body = { agent: 'guarded', message: 'begin', open: true };
  const { id } = (await desk.send('/v1/runs', { body })).body;
  const say = async (as: string, message: string) =>
    (await desk.send(path(id, '/messages'), { as, body: { message, id: 'm-1' } })).body;
  const sent = [await say('bob', 'of bob'), await say('ann', 'of ann'), await say('bob', 'again')];
  const turns = sent.map(({ turn }) => turn);
  expect(turns).toEqual([2, 3, 2]);
  await desk.client.result(id, { turn: 3 });
  const { messages } = await desk.client.transcript(id);
  const said = messages.filter(({ role }) => role === 'user').map(({ text }) => text);
  expect(said).toEqual(['begin', 'of bob', 'of ann']);
  await desk.client.close(id);
});
