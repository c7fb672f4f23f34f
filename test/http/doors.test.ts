import { randomBytes, randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { auditRuns } from '../../src/client/audit.js';
import { openClient, partsOfClient } from '../../src/client/create-client.js';
import { NotDeliveredError } from '../../src/core/errors.js';
import { encryptionCodec } from '../../src/encryption/payload-codec.js';
import { createServer } from '../../src/http.js';
import { errorAnswer } from '../../src/http/errors.js';
import { readLineage } from '../../src/history/read-run.js';
import { BlobError } from '../../src/storage/blob-store.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { childOf } from '../support/child-runs.js';
import { type HttpDesk, keyOf, openHttpDesk } from '../support/http-desk.js';

const guarded = defineAgent({
  name: 'guarded',
  instructions: 'x',
  model: 'm',
  tools: [
    defineTool({
      name: 'pay',
      description: 'pays',
      input: z.object({ euros: z.number() }),
      effect: 'keyed',
      execute: async ({ euros }) => `paid ${euros}`,
      undo: async () => undefined,
    }),
  ],
  rules: [{ tool: 'pay', then: 'ask', deciders: ['group:ops'] }],
});

const helper = defineAgent({
  name: 'helper',
  description: 'helps',
  instructions: 'x',
  decide: async () => ({ answer: 'helped' }),
});
const chief = defineAgent({
  name: 'chief',
  instructions: 'x',
  agents: [helper],
  decide: async ({ messages }) => {
    const result = messages.find(({ role }) => role === 'tool');
    if (result !== undefined) return { answer: result.text };
    return { calls: [{ name: 'helper', arguments: { message: 'help' } }] };
  },
});

const serve = {
  principals: {
    ann: { rights: { '*': 'all' }, groups: ['ops'] },
    bob: { rights: { desk: ['start'], guarded: 'all', chief: ['start'], helper: ['start'] } },
    cid: { rights: { guarded: ['read', 'start', 'talk'] } },
  },
} as const;

let desk: HttpDesk;

const path = (id: string, rest = ''): string => `/v1/runs/${encodeURIComponent(id)}${rest}`;

beforeAll(async () => {
  desk = await openHttpDesk(['ann', 'bob', 'cid'], serve, { agents: [guarded, chief] });
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
  const undo = { call: request.call };
  const [undone, refused] = [
    await desk.send(path(id, '/undo'), { as: 'bob', body: undo }),
    await desk.send(path(id, '/undo'), { as: 'cid', body: undo }),
  ];
  expect([undone.status, undone.body.call, refused.status]).toEqual([200, request.call, 403]);
  await desk.client.close(id);
});

test('a fork needs the rights about its source, and has a context only of a run of its own', async () => {
  const body = { agent: 'guarded', message: 'hello', context: { user: 'bob' } };
  const { id } = (await desk.send('/v1/runs', { as: 'bob', body })).body;
  await desk.client.result(id);
  const fork = async (as: string, more: object = {}) =>
    await desk.send(path(id, '/forks'), { as, body: { message: 'again', ...more } });
  expect((await fork('cid')).body.error).toMatchObject({
    code: 'forbidden',
    message: 'cid lacks the right "control" for agent "guarded"',
  });
  expect((await fork('bob', { agent: 'other' })).status).toBe(400);
  const own = await fork('bob');
  expect(own.status).toBe(201);
  expect((await desk.send(path(own.body.id, '/result'), { as: 'bob' })).body.done).toBe(true);
});

test('files go with a message, as bytes and never by reference', async () => {
  const data = Buffer.from('a,b\n1,2').toString('base64');
  const attachments = [{ data, mediaType: 'text/csv', name: 'sums.csv' }];
  const body = { agent: 'guarded', message: 'read', attachments, open: true };
  const { id } = (await desk.send('/v1/runs', { body })).body;
  await desk.client.result(id, { turn: 1 });
  const more = { message: 'and this', attachments: [{ url: 'https://example.com/a.png' }] };
  expect((await desk.send(path(id, '/messages'), { body: more })).status).toBe(200);
  await desk.client.result(id, { turn: 2 });
  const { messages } = await desk.client.transcript(id);
  expect(
    messages.flatMap((one) => (one.role === 'user' ? (one.attachments ?? []) : [])),
  ).toMatchObject([
    { type: 'file', mediaType: 'text/csv', name: 'sums.csv' },
    { url: more.attachments[0]?.url },
  ]);
  const [file] = messages.flatMap((one) => (one.role === 'user' ? (one.attachments ?? []) : []));
  const byReference = { message: 'mine', attachments: [file] };
  expect((await desk.send(path(id, '/messages'), { body: byReference })).status).toBe(400);
  await desk.client.close(id);
});

test('a message with the id of another sender is another message', async () => {
  const body = { agent: 'guarded', message: 'begin', open: true };
  const { id } = (await desk.send('/v1/runs', { body })).body;
  const say = async (as: string, message: string) =>
    (await desk.send(path(id, '/messages'), { as, body: { message, id: 'm-1' } })).body;
  const sent = [await say('bob', 'of bob'), await say('ann', 'of ann'), await say('bob', 'of bob')];
  const turns = sent.map(({ turn }) => turn);
  expect(turns).toEqual([2, 3, 2]);
  expect(await say('bob', 'again')).toEqual({
    error: {
      code: 'input',
      message:
        'id: the run has received another message with this id, and this one was not delivered',
      fix: 'give it an id of its own',
    },
  });
  await desk.client.result(id, { turn: 3 });
  const { messages } = await desk.client.transcript(id);
  const said = messages.filter(({ role }) => role === 'user').map(({ text }) => text);
  expect(said).toEqual(['begin', 'of bob', 'of ann']);
  await desk.client.close(id);
});

/** Lets no answer of Temporal about a run reach the desk. Returns the function that ends this. */
function loseAnswersAbout(id: string): () => void {
  const { workflowService } = partsOfClient(desk.client).client;
  const describe = workflowService.describeWorkflowExecution.bind(workflowService);
  const details = 'connect 10.0.0.7:7233';
  const lose = async (request: Parameters<typeof describe>[0]) => {
    if (request.execution?.workflowId !== id) return await describe(request);
    const error = new Error(`14 UNAVAILABLE: ${details}`);
    throw Object.assign(error, { code: 14, details, metadata: {} });
  };
  const spied = vi.spyOn(workflowService, 'describeWorkflowExecution').mockImplementation(lose);
  return () => spied.mockRestore();
}

test('a run about which Temporal does not answer is neither taken nor hidden', async () => {
  const lines: string[] = [];
  const env = { PERDURE_SERVE_KEYS: `bob:${keyOf('bob')}` };
  const log = (line: string): void => void lines.push(line);
  const key = randomUUID();
  await using server = await createServer({ client: desk.client, serve, env, log });
  const send = async (to: string, body?: object) => {
    const headers = {
      authorization: `Bearer ${keyOf('bob')}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    };
    const given = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const answer = await server.fetch(new Request(`http://127.0.0.1${to}`, { headers, ...given }));
    return { status: answer.status, body: await answer.json() };
  };
  const start = { agent: 'chief', message: 'x' };
  const { body: started } = await send('/v1/runs', start);
  const { id } = started as { readonly id: string };
  expect((await desk.client.result(id)).answer).toBe('helped');
  const child = await childOf(desk.rig.client, desk.rig.client.workflow.getHandle(id));
  const restore = loseAnswersAbout(id);
  const answers = [await send('/v1/runs', start), await send(path(child.workflowId))];
  restore();
  const unanswered = { status: 503, body: { error: { code: 'no_server' } } };
  expect(answers).toMatchObject([unanswered, unanswered]);
  expect(await send('/v1/runs', start)).toMatchObject({ body: { id, repeated: true } });
  expect((await send(path(child.workflowId))).status).toBe(200);
  // Where Temporal is, only the log says.
  expect(JSON.stringify(answers)).not.toContain('10.0.0.7');
  expect(lines.filter((line) => line.includes('10.0.0.7'))).toHaveLength(2);
});

test('the runs from which a run was forked do not end at one about which Temporal does not answer', async () => {
  const body = { agent: 'other', message: 'hello' };
  const { id } = (await desk.send('/v1/runs', { body })).body;
  await desk.client.result(id);
  const forked = await desk.client.fork(id, { message: 'again' });
  await desk.client.result(forked.id);
  const { client, archive } = partsOfClient(desk.client);
  expect(await readLineage(client, forked.id, archive)).toEqual([forked.id, id]);
  const restore = loseAnswersAbout(id);
  await expect(readLineage(client, forked.id, archive)).rejects.toThrow('UNAVAILABLE');
  restore();
});

test('with hashed ids, the log has none that a client of OpenAI has chosen', async () => {
  const lines: string[] = [];
  const connection = Connection.lazy({ address: '127.0.0.1:1', interceptors: [] });
  const keys = { k1: randomBytes(32).toString('base64') };
  const encryption = { keys, current: 'k1', hashIds: 'k1' };
  const payloadCodecs = [encryptionCodec(encryption)];
  const temporal = new Client({ connection, dataConverter: { payloadCodecs } });
  const client = await openClient({
    client: temporal,
    encryption,
    home: desk.rig.home,
    env: {},
  });
  await using server = await createServer({
    client,
    env: {},
    log: (line) => void lines.push(line),
  });
  const chosen = Buffer.from('conversation-of-ann').toString('base64url');
  for (const rest of ['', '/input_items']) {
    const { status } = await server.fetch(
      new Request(`http://127.0.0.1/v1/responses/resp_1_${chosen}${rest}`),
    );
    expect(status).toBe(503);
  }
  await connection.close();
  const logged = lines.map((line) => /^GET \/v1\/responses\/resp_1_([\w-]+)/.exec(line)?.[1] ?? '');
  const ids = logged.map((text) => Buffer.from(text, 'base64url').toString());
  expect(ids).toEqual([expect.stringMatching(/^h-/), expect.stringMatching(/^h-/)]);
});

test('no answer says where Temporal, its queues, and the stores are', async () => {
  const lines: string[] = [];
  const connection = Connection.lazy({ address: '127.0.0.1:1', interceptors: [] });
  const home = desk.rig.home;
  const client = await openClient({ client: new Client({ connection }), home, env: {} });
  await using server = await createServer({
    client,
    env: {},
    log: (line) => void lines.push(line),
  });
  const answer = await server.fetch(new Request('http://127.0.0.1/v1/runs'));
  expect([answer.status, await answer.json()]).toMatchObject([
    503,
    { error: { code: 'no_server', message: 'the Temporal server does not answer' } },
  ]);
  expect(lines).toEqual([expect.stringContaining('127.0.0.1:1')]);
  // Neither is UTF-8 with escapes.
  for (const id of ['%A4', '%zz']) {
    const { status } = await server.fetch(new Request(`http://127.0.0.1/v1/runs/${id}`));
    expect([status, lines.at(-1)]).toEqual([503, expect.stringContaining(`GET /v1/runs/${id}: `)]);
  }
  await connection.close();
  const lost = new NotDeliveredError('no worker polls task queue "hidden"', {
    mayArrive: true,
    worker: 'missing',
  });
  expect(errorAnswer(lost)).toMatchObject({
    status: 503,
    body: {
      error: {
        code: 'not_delivered',
        message: 'no worker is running; what was sent may still take effect',
      },
    },
    isHidden: true,
  });
  const missing = new BlobError('blob 12 is missing from /srv/hidden', { kind: 'missing' });
  expect(errorAnswer(missing)).toMatchObject({
    status: 500,
    body: { error: { code: 'blob', message: expect.stringMatching(/its log has the error$/) } },
    isHidden: true,
  });
});
