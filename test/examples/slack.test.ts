import { createHmac } from 'node:crypto';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createSlackApp } from '../../examples/slack/app.js';
import config from '../../examples/slack/perdure.config.js';
import { postText } from '../../examples/slack/slack.js';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { createServer, listen } from '../../src/http.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { clientOf } from '../support/clerk.js';
import { keyOf } from '../support/http-desk.js';
import { httpServer, type HttpServer } from '../support/http-server.js';
import { createRig, type Rig } from '../support/rig.js';

const SECRET = 'slack-signing-secret-of-a-test';
const ANN = 'U1';
const BOB = 'U2';

interface Section {
  readonly text: { readonly text: string };
}

interface Call {
  readonly method: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field
  readonly body: any;
}

/** An agent whose tool gets more than the model has written. */
const paying = defineAgent({
  name: 'paying',
  instructions: 'x',
  tools: [
    defineTool({
      name: 'pay',
      description: 'pays',
      input: z.object({ order: z.number(), euros: z.number().default(77_777) }),
      effect: 'keyed',
      output: z.object({ receipt: z.number() }),
      execute: () => Promise.resolve({ receipt: 1 }),
    }),
  ],
  rules: [{ tool: 'pay', then: 'ask' }],
});

let rig: Rig;
let stub: Stub;
let slack: HttpServer;
let client: PerdureClient;
let calls: Call[] = [];
let app: ReturnType<typeof createSlackApp>;
let closeDoor: () => Promise<void>;

beforeAll(async () => {
  [rig, stub] = [await createRig(), await startStub()];
  slack = await httpServer(async (request, response) => {
    calls.push({ method: request.url?.slice(1) ?? '', body: JSON.parse(await textOf(request)) });
    response.end('{"ok":true}');
  });
  vi.stubEnv('SLACK_API', slack.url);
  vi.stubEnv('SLACK_SIGNING_SECRET', SECRET);
  const { notify } = config;
  const agents = [...config.agents, paying];
  const env = { PERDURE_HOME: rig.home, PERDURE_MODEL: 'stub', OPENAI_BASE_URL: stub.baseUrl };
  await rig.worker(agents, { ...(notify && { notify }), env });
  client = await clientOf(rig);
  const keys = { ann: keyOf('ann'), bob: keyOf('bob') };
  const server = await createServer({
    client,
    config: { agents },
    env: { PERDURE_SERVE_KEYS: `ann:${keys.ann},bob:${keys.bob}` },
  });
  const listening = await listen(server);
  closeDoor = () => listening.close();
  app = createSlackApp({ url: listening.url, people: { [ANN]: keys.ann, [BOB]: keys.bob } });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await closeDoor();
  await client.disconnect();
  await rig.close();
  await stub.close();
  await slack.close();
});

/** Sends what Slack would send, signed as Slack signs it. */
async function send(path: string, body: string, { shift = 0, secret = SECRET } = {}) {
  const seconds = String(Math.floor((Date.now() + shift) / 1_000));
  const hmac = createHmac('sha256', secret).update(`v0:${seconds}:${body}`).digest('hex');
  const isForm = path.endsWith('actions');
  return await app.request(path, {
    method: 'POST',
    body,
    headers: {
      'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
      'x-slack-request-timestamp': seconds,
      'x-slack-signature': `v0=${hmac}`,
    },
  });
}

const said = (ts: string, text: string, rest: object = {}) =>
  JSON.stringify({
    type: 'event_callback',
    event: { type: 'app_mention', user: ANN, channel: 'C1', ts, text, ...rest },
  });

const acted = (payload: object) =>
  new URLSearchParams({ payload: JSON.stringify(payload) }).toString();

/** Waits until Slack was called so, and returns the body. */
async function called(method: string, found: (text: string) => boolean) {
  return await vi.waitFor(
    () => {
      const call = calls.find((one) => one.method === method && found(JSON.stringify(one.body)));
      if (call === undefined) throw new Error(`no ${method} among ${JSON.stringify(calls)}`);
      return call.body;
    },
    { timeout: 30_000, interval: 50 },
  );
}

/** Presses the button of a post, and returns the form that opens. */
async function review(user: string, post: { blocks: { accessory: object }[]; thread_ts: string }) {
  calls = calls.filter(({ method }) => method !== 'views.open');
  const message = { ts: '9.9', thread_ts: post.thread_ts };
  const actions = [post.blocks[0]?.accessory];
  const pressed = {
    type: 'block_actions',
    user: { id: user },
    trigger_id: 't',
    actions,
    channel: { id: 'C1' },
    message,
  };
  await send('/slack/actions', acted(pressed));
  return (await called('views.open', () => true)).view;
}

async function submit(user: string, metadata: string, as: string, note = '') {
  const values = {
    decision: { decision: { selected_option: { value: as } } },
    note: { note: { value: note } },
  };
  const view = { private_metadata: metadata, state: { values } };
  const response = await send(
    '/slack/actions',
    acted({ type: 'view_submission', user: { id: user }, view }),
  );
  return await response.json();
}

describe('a refund in a thread', () => {
  test('is asked for, reviewed, approved by another person, and answered there', async () => {
    calls = [];
    stub.script(replyCall('refund', { order: 17, euros: 60 }), replyText('Refunded 60 €.'));
    const mention = said('1700.1', '<@U9> Refund 60 € to order 17');
    expect((await send('/slack/events', mention)).status).toBe(200);
    // Slack repeats what it believes lost.
    expect((await send('/slack/events', mention)).status).toBe(200);
    const post = await called('chat.postMessage', (text) => text.includes('Review'));
    expect(post).toMatchObject({ channel: 'C1', thread_ts: '1700.1' });
    const own = await review(ANN, post);
    expect(JSON.stringify(own.blocks)).toContain('euros: 60');
    expect(await submit(ANN, own.private_metadata, 'approve')).toMatchObject({
      response_action: 'errors',
      errors: { decision: 'by: expected anyone but the requester, got "ann"' },
    });
    const form = await review(BOB, post);
    expect(await submit(BOB, form.private_metadata, 'approve')).toEqual({
      response_action: 'clear',
    });
    expect(await called('chat.postMessage', (text) => text.includes('has decided'))).toMatchObject({
      text: `<@${BOB}> has decided: approve`,
      thread_ts: '1700.1',
    });
    const answer = await called('chat.postMessage', (text) => text.includes('Refunded 60 €.'));
    expect(answer).toMatchObject({ channel: 'C1', thread_ts: '1700.1' });
    // A second click repeats the decision, and another decision comes too late.
    expect(await submit(BOB, form.private_metadata, 'approve')).toEqual({
      response_action: 'clear',
    });
    expect(await submit(BOB, form.private_metadata, 'deny')).toMatchObject({
      response_action: 'errors',
    });
    const { decisions } = await client.status('slack-C1-1700.1');
    expect(decisions).toMatchObject([{ as: 'approve', by: 'bob' }]);
    stub.assertConsumed();
  });

  test('goes on with a reply, which is no decision', async () => {
    calls = [];
    stub.script(
      replyText('For which order?'),
      replyCall('refund', { order: 18, euros: 70 }),
      replyText('It was denied.'),
    );
    await send('/slack/events', said('1800.1', '<@U9> Refund 70 €'));
    await called('chat.postMessage', (text) => text.includes('which order'));
    const inThread = { type: 'message', thread_ts: '1800.1' };
    await send('/slack/events', said('1800.2', 'order 18', inThread));
    const post = await called('chat.postMessage', (text) => text.includes('Review'));
    await send('/slack/events', said('1800.3', 'yes', { ...inThread, user: BOB }));
    expect(await called('chat.postEphemeral', () => true)).toMatchObject({
      user: BOB,
      blocks: [{ text: { text: expect.stringContaining('this message may not decide') } }],
    });
    const { pending } = await client.status('slack-C1-1800.1');
    expect(pending).toMatchObject([{ tool: 'refund', kind: 'approval' }]);
    const { private_metadata } = await review(BOB, post);
    await submit(BOB, private_metadata, 'deny', 'too late');
    await called('chat.postMessage', (text) => text.includes('It was denied.'));
    expect(JSON.stringify(stub.requests.at(-1)?.body)).toContain('too late');
    await client.cancel('slack-C1-1800.1');
  });
});

describe('a decision', () => {
  test('shows what the tool gets', async () => {
    calls = [];
    const id = 'slack-C1-1850.1';
    stub.scriptFor('pay order 17', replyCall('pay', { order: 17 }));
    await client.start('paying', { message: 'pay order 17', id, by: 'ann' });
    const post = await called('chat.postMessage', (text) => text.includes('Review'));
    const { blocks } = await review(BOB, post);
    expect(JSON.stringify(blocks)).toContain('the tool gets euros: 77777');
    await client.cancel(id);
  });

  test('that a worker has to check is not called made', async () => {
    calls = [];
    stub.script(replyCall('refund', { order: 19, euros: 80 }), replyText('Done by hand.'));
    await send('/slack/events', said('1860.1', '<@U9> Refund 80 € to order 19'));
    const post = await called('chat.postMessage', (text) => text.includes('Review'));
    const { private_metadata } = await review(BOB, post);
    expect(await submit(BOB, private_metadata, 'answer', 'by hand')).toEqual({
      response_action: 'clear',
    });
    await called('chat.postMessage', (text) => text.includes('Done by hand.'));
    const posted = calls.map(({ body }) => String(body.text)).filter((text) => text.includes(BOB));
    expect(posted).toEqual([
      `The decision of <@${BOB}> is being checked: answer. If it is refused, this thread and Review say why.`,
    ]);
    await client.cancel('slack-C1-1860.1');
  });
});

describe('a decision that is refused', () => {
  test('is said to be so in the thread, with the reason', async () => {
    calls = [];
    const id = 'slack-C1-1865.1';
    stub.scriptFor('pay order 21', replyCall('pay', { order: 21 }));
    await client.start('paying', { message: 'pay order 21', id, by: 'ann' });
    const post = await called('chat.postMessage', (text) => text.includes('Review'));
    const { private_metadata } = await review(BOB, post);
    expect(await submit(BOB, private_metadata, 'answer', 'by hand')).toEqual({
      response_action: 'clear',
    });
    const refusal = await called('chat.postMessage', (text) => text.includes('is refused, and'));
    expect(refusal).toMatchObject({ channel: 'C1', thread_ts: '1865.1' });
    expect(JSON.stringify(refusal.blocks)).toContain('result');
    expect((await client.status(id)).pending).toMatchObject([{ id: 'r1', tool: 'pay' }]);
    await client.cancel(id);
  });
});

describe('an answer', () => {
  test('that is long is posted whole, and none is an empty text', async () => {
    calls = [];
    const long = `${'x'.repeat(2_899)}😀${'y'.repeat(9_000)} the end`;
    stub.script(replyText(long), replyCall('refund', { order: 20, euros: 5 }), replyText(''));
    await send('/slack/events', said('1870.1', '<@U9> Say much'));
    await called('chat.postMessage', (text) => text.includes('the end'));
    const texts = calls.flatMap(({ body }) => body.blocks.map((block: Section) => block.text.text));
    expect(texts.join('')).toBe(long);
    expect(texts.every((text) => text.length <= 3_000)).toBe(true);
    expect(calls.map(({ body }) => body.blocks.length)).toEqual([3, 2]);
    const inThread = { type: 'message', thread_ts: '1870.1' };
    await send('/slack/events', said('1870.2', 'Refund 5 € to order 20', inThread));
    await called('chat.postMessage', (text) => text.includes('ended without an answer (answer)'));
    await client.cancel('slack-C1-1870.1');
    stub.assertConsumed();
  });

  test('of characters of two units is not cut within one', async () => {
    calls = [];
    const long = `x${'😀'.repeat(4_000)}`;
    await postText({ channel: 'C1', thread_ts: '1.1' }, 'The answer.', long);
    const texts = calls.flatMap(({ body }) => body.blocks.map((block: Section) => block.text.text));
    expect(texts.join('')).toBe(long);
    expect(texts.every((text) => text.isWellFormed() && text.length <= 3_000)).toBe(true);
  });
});

describe('nothing happens', () => {
  test.each([
    ['signed with another secret', { secret: 'another' }],
    ['older than five minutes', { shift: -301_000 }],
    ['from the future', { shift: 600_000 }],
  ])('after a request that is %s', async (_what, how) => {
    const response = await send('/slack/events', said('1900.1', '<@U9> hi'), how);
    expect(response.status).toBe(401);
    await expect(client.status('slack-C1-1900.1')).rejects.toThrow('no run');
  });

  test('for a person without a key, a bot, and a thread of another program', async () => {
    calls = [];
    const ignored = [
      said('2000.1', '<@U9> hi', { user: 'U3' }),
      said('2000.2', '<@U9> hi', { user: 'constructor' }),
      said('2000.3', '<@U9> hi', { bot_id: 'B1' }),
      said('2000.4', 'hi', { type: 'message', thread_ts: '1.1' }),
      said('2000.5', 'hi', { type: 'message' }),
    ];
    for (const event of ignored) expect((await send('/slack/events', event)).status).toBe(200);
    for (const ts of ['2000.1', '2000.2', '2000.3', '2000.5']) {
      await expect(client.status(`slack-C1-${ts}`)).rejects.toThrow('no run');
    }
    expect(await submit('U3', '{}', 'approve')).toMatchObject({
      errors: { decision: 'You may not decide here: the app has no key for you.' },
    });
    expect(calls).toEqual([]);
  });

  test('but the proof that Slack asks for', async () => {
    const proof = JSON.stringify({ type: 'url_verification', challenge: 'abc' });
    expect(await (await send('/slack/events', proof)).text()).toBe('abc');
  });
});
