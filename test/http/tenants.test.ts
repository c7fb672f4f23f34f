import { afterAll, beforeAll, expect, test } from 'vitest';
import { runOf } from '../../src/http/chats.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

let desk: HttpDesk;
beforeAll(async () => {
  desk = await openHttpDesk(['ann', 'acme', 'both', 'mixed'], {
    principals: {
      ann: { rights: { '*': 'all' } },
      acme: { rights: { '*': 'all' }, tenant: 'acme' },
      both: { rights: { '*': 'all' }, groups: ['acme', 'umbra'] },
      mixed: { rights: { talker: ['start'] }, groups: ['owners', 'readers'] },
    },
    groups: {
      acme: { tenant: 'acme' },
      umbra: { tenant: 'umbra' },
      owners: { tenant: 'acme', rights: { '*': 'all' } },
      readers: { tenant: 'umbra', rights: { other: ['read'] } },
    },
  });
});
afterAll(async () => await desk.close());

const path = (id: string, rest = ''): string => `/v1/runs/${encodeURIComponent(id)}${rest}`;

test('a principal of a tenant starts and sees runs of this tenant only', async () => {
  const start = async (as: string, tenant?: string) => {
    const body = { agent: 'other', message: 'x', ...(tenant && { tenant }) };
    const { status, body: answer } = await desk.send('/v1/runs', { as, body });
    return status === 201 ? String(answer.id) : `${status} ${answer.error.message}`;
  };
  const own = await start('acme');
  expect(await start('acme', 'umbra')).toBe(
    '403 tenant: expected one of those of acme ("acme"), got "umbra"',
  );
  expect(await start('both')).toBe(
    '403 tenant: expected one of those of both ("acme", "umbra"), got none',
  );
  const [umbra, none] = [await start('both', 'umbra'), await start('ann')];
  const runs = [own, umbra, none];
  const tenants = await Promise.all(runs.map((id) => desk.client.status(id)));
  expect(tenants.map(({ tenant }) => tenant)).toEqual(['acme', 'umbra', undefined]);
  const seen = async (as: string) =>
    await Promise.all(runs.map(async (id) => (await desk.send(path(id), { as })).status));
  expect(await seen('acme')).toEqual([200, 404, 404]);
  expect(await seen('both')).toEqual([200, 200, 404]);
  expect(await seen('ann')).toEqual([200, 200, 200]);
  const message = { message: 'x' };
  for (const rest of ['/messages', '/forks']) {
    const refused = await desk.send(path(umbra, rest), { as: 'acme', body: message });
    expect([rest, refused.status]).toEqual([rest, 404]);
  }
  const forked = await desk.send(path(own, '/forks'), { as: 'acme', body: message });
  const fork = String(forked.body.id);
  expect((await desk.client.status(fork)).tenant).toBe('acme');
  // The server lists a run a moment after its start.
  const listed = async (as: string): Promise<readonly string[]> => {
    const { body } = await desk.send('/v1/runs?agent=other&limit=200', { as });
    return body.rows.map((row: { id: string }) => row.id);
  };
  await expect.poll(async () => await listed('ann')).toEqual(expect.arrayContaining(runs));
  await expect.poll(async () => await listed('acme')).toEqual([fork, own]);
});

test('a principal of several tenants goes on with its chats at every door', async () => {
  const principal = { name: 'both' };
  const ids = {
    ui: runOf({ principal }, { door: 'chat', agent: 'desk', id: 'c' }),
    agUi: runOf({ principal }, { door: 'thread', agent: 'desk', id: 't' }),
    openai: 'conversation-of-both',
  };
  const user = (content: string) => ({ id: 'm', role: 'user', content });
  const parts = [{ type: 'text', text: 'to the chat' }];
  const say = async (door: string, body: object): Promise<readonly [number, string]> => {
    const response = await fetch(desk.url + door, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${keyOf('both')}`, 'content-type': 'application/json' },
    });
    return [response.status, await response.text()];
  };
  const all = async () => [
    await say('/v1/ui/desk', { id: 'c', messages: [{ id: 'm', role: 'user', parts }] }),
    await say('/v1/ag-ui/desk', { threadId: 't', runId: 'r', messages: [user('to the thread')] }),
    await say('/v1/responses', { model: 'desk', input: 'to it', conversation: 'conv_of-both' }),
  ];
  // It starts nothing there.
  expect((await all()).map(([status]) => status)).toEqual([403, 403, 403]);
  for (const id of Object.values(ids)) {
    const body = { agent: 'desk', id, open: true, tenant: 'umbra' };
    expect((await desk.send('/v1/runs', { as: 'both', body })).status).toBe(201);
  }
  const answers = await all();
  expect(answers.map(([status]) => status)).toEqual([200, 200, 200]);
  for (const [at, said] of ['to the chat', 'to the thread', 'to it'].entries()) {
    expect(answers[at]?.[1]).toContain(`you said: ${said}`);
  }
  const tenants = Object.values(ids).map(async (id) => (await desk.client.status(id)).tenant);
  expect(await Promise.all(tenants)).toEqual(['umbra', 'umbra', 'umbra']);
});

test('the rights that a group gives for its tenant are about the runs of this tenant only', async () => {
  const start = async (as: string, tenant: string, more: object = {}) =>
    await desk.send('/v1/runs', { as, body: { agent: 'other', message: 'x', tenant, ...more } });
  const [acme, umbra] = [
    String((await start('mixed', 'acme', { context: {} })).body.id),
    String((await start('both', 'umbra')).body.id),
  ];
  const refused = await start('mixed', 'umbra');
  expect([refused.status, refused.body.error.message]).toEqual([
    403,
    'mixed lacks the right "start" for agent "other" for tenant "umbra"',
  ]);
  // A table without a tenant of its own counts for all of them, and gives no `control`.
  const talker = { agent: 'talker', open: true };
  const told = await start('mixed', 'umbra', { ...talker, message: undefined, context: {} });
  expect([told.status, told.body.error.message]).toEqual([
    403,
    'mixed lacks the right "control" for agent "talker" for tenant "umbra"',
  ]);
  expect((await start('mixed', 'umbra', { ...talker, message: undefined })).status).toBe(201);
  const rights = async (id: string) => (await desk.send(path(id), { as: 'mixed' })).body.rights;
  expect(await rights(acme)).toEqual(['talk', 'read', 'decide', 'control']);
  expect(await rights(umbra)).toEqual(['read']);
  const act = async (rest: string, body: object) =>
    (await desk.send(path(umbra, rest), { as: 'mixed', body })).status;
  const decisions = [{ request: 'r1', digest: '0'.repeat(64), as: 'approve' }];
  expect(await act('/messages', { message: 'x' })).toBe(403);
  expect(await act('/forks', { message: 'x' })).toBe(403);
  expect(await act('/cancel', {})).toBe(403);
  expect(await act('/decisions', { decisions })).toBe(403);
  const { id: foreign } = (await start('both', 'umbra', { ...talker, message: undefined })).body;
  expect((await desk.send(path(foreign), { as: 'mixed' })).status).toBe(404);
  const listed = async (): Promise<readonly string[]> => {
    const { body } = await desk.send('/v1/runs?limit=200', { as: 'mixed' });
    return body.rows.map((row: { id: string }) => row.id);
  };
  await expect.poll(listed).toEqual(expect.arrayContaining([acme, umbra]));
  expect(await listed()).not.toContain(foreign);
  await desk.send(path(foreign, '/close'), { as: 'both', body: {} });
});
