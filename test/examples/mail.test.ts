import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import config from '../../examples/mail/perdure.config.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { type Listening, createServer, listen } from '../../src/http.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { scriptedModel } from '../../src/testing/script.js';
import { clientOf } from '../support/clerk.js';
import { keyOf } from '../support/http-desk.js';
import { type HttpServer, httpServer } from '../support/http-server.js';
import { createRig, type Rig } from '../support/rig.js';

let rig: Rig;
let mail: HttpServer;
let client: PerdureClient;
let door: Listening;
const mails: { readonly token: string | undefined; readonly body: Record<string, string> }[] = [];

beforeAll(async () => {
  rig = await createRig();
  mail = await httpServer(async (request, response) => {
    const body = JSON.parse(await textOf(request));
    const token = request.headers['x-postmark-server-token'];
    mails.push({ token: String(token), body });
    // The first one fails, and comes again.
    response.writeHead(mails.length === 1 ? 503 : 200).end('{}');
  });
  const { agents, notify } = config;
  const model = scriptedModel([
    replyCall('refund', { order: 17, euros: 60 }),
    replyText('Refunded.'),
  ]);
  vi.stubEnv('MAIL_API', mail.url);
  vi.stubEnv('MAIL_TOKEN', 'token-of-the-account');
  vi.stubEnv('MAIL_TO', 'ann@example.com');
  await rig.worker(agents, { models: { demo: model }, ...(notify && { notify }) });
  client = await clientOf(rig);
  const env = { PERDURE_SERVE_KEYS: `web:${keyOf('web')},ann:${keyOf('ann')}` };
  door = await listen(await createServer({ client, config: { agents }, env }), {});
  vi.stubEnv('CONSOLE_URL', door.url);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await door.close();
  await client.disconnect();
  await rig.close();
  await mail.close();
});

test('a refund is asked for by mail, whose link opens the console and decides nothing', async () => {
  const send = async (as: string, path: string, body: object) =>
    await fetch(`${door.url}/v1/runs${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${keyOf(as)}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await send('web', '', { agent: 'desk', message: 'Refund 60 € to order 17', id: 'by mail/1' });
  await expect.poll(() => mails).toHaveLength(2);
  const [, { token, body } = { token: '', body: {} }] = mails;
  expect([token, body['To']]).toEqual(['token-of-the-account', 'ann@example.com']);
  expect(body['Subject']).toBe('A decision is needed: refund');
  expect(body['TextBody']).toContain('refund 60 € to order 17');
  const link = new URL(/http:\S+/.exec(body['TextBody'] ?? '')?.[0] ?? '');
  expect(link.hash).toBe('#/run/by%20mail%2F1');

  const page = await fetch(link);
  expect([page.status, page.headers.get('content-type')]).toEqual([
    200,
    'text/html; charset=utf-8',
  ]);
  const [request] = (await client.requests({ run: 'by mail/1' })).requests;
  expect(request?.tool).toBe('refund');
  const decisions = [{ request: request?.id, digest: request?.digest, as: 'approve' }];
  const path = `/${encodeURIComponent('by mail/1')}/decisions`;
  expect((await send('web', path, { decisions })).status).toBe(409);
  expect((await send('ann', path, { decisions })).status).toBe(200);
  expect(await client.result('by mail/1')).toMatchObject({ answer: 'Refunded.' });
  const { decisions: made } = await client.status('by mail/1');
  expect(made).toMatchObject([{ as: 'approve', by: 'ann', door: 'http' }]);
});
