import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RequestDependencies } from '../../src/activities/activity-context.js';
import { notifyRequest } from '../../src/activities/requests/notify-request.js';
import type { Notice } from '../../src/agents/agent-parts.js';
import type { NotifyRequestInput } from '../../src/core/run/contract.js';
import { inActivity } from '../support/activity.js';
import { httpServer } from '../support/http-server.js';

const KEY = Buffer.alloc(32, 9);

const input: NotifyRequestInput = {
  agent: 'clerk',
  turn: 2,
  request: {
    id: 'r1',
    kind: 'approval',
    call: 'call_1_1_0',
    tool: 'refund',
    effect: 'keyed',
    arguments: '{"euros":7,"secret":"of the call"}',
    digest: 'd'.repeat(64),
    shown: '€'.repeat(400),
    why: 'rule: ask refund',
    requester: 'ada',
    raisedAt: 1_700_000_000_000,
    expiresAt: null,
    onExpiry: 'deny',
    decisions: ['approve', 'deny', 'edit', 'answer'],
    deciders: [],
    fix: 'perdure approve run-1 r1',
  },
};

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver that answers each post with the next status. */
async function receiver(...statuses: readonly number[]): Promise<{ url: string; got: Received[] }> {
  const got: Received[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    got.push({ headers: request.headers, body: await text(request) });
    const status = statuses[got.length - 1] ?? statuses.at(-1);
    response.writeHead(status ?? 200, { location: '/elsewhere' }).end('no words of mine');
  };
  const server = await httpServer((request, response) => void answer(request, response));
  onTestFinished(() => server.close());
  return { url: `${server.url}/hook?x=1`, got };
}

const send = async (notify?: RequestDependencies['notify']): Promise<void> =>
  await inActivity(() =>
    notifyRequest({ requests: { rules: [], ...(notify && { notify }) } }, input),
  );

/** Returns the failure of a post; throws if it succeeds. */
async function failureOf(sent: Promise<void>): Promise<ApplicationFailure> {
  try {
    await sent;
  } catch (error) {
    if (error instanceof ApplicationFailure) return error;
    throw error;
  }
  throw new Error('it was sent');
}

/** Verifies a message as a receiver does, following the specification of Standard Webhooks. */
function verified({ headers, body }: Received): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = headers;
  const signed = createHmac('sha256', KEY).update([id, time, body].join('.')).digest('base64');
  const isNew = Math.abs(Date.now() / 1_000 - Number(time)) < 300;
  return isNew && String(signature).split(' ').includes(`v1,${signed}`);
}

describe('a webhook', () => {
  test('is signed, and contains only enough to identify the request', async () => {
    const { url, got } = await receiver(204);
    await send({ url, key: KEY });
    const [message] = got;
    if (message === undefined) throw new Error('nothing came');
    expect(verified(message)).toBe(true);
    expect(verified({ ...message, body: message.body.replace('r1', 'r2') })).toBe(false);
    expect(message.headers['content-type']).toBe('application/json');
    expect(JSON.parse(message.body)).toEqual({
      type: 'perdure.request',
      timestamp: '2023-11-14T22:13:20.000Z',
      data: {
        run: 'run-1',
        agent: 'clerk',
        turn: 2,
        request: {
          id: 'r1',
          kind: 'approval',
          tool: 'refund',
          effect: 'keyed',
          digest: 'd'.repeat(64),
          shown: `${'€'.repeat(299)}…`,
          why: 'rule: ask refund',
          expiresAt: null,
          decisions: ['approve', 'deny', 'edit', 'answer'],
          fix: 'npx perdure approve run-1 r1',
        },
      },
    });
  });

  test('has the same id in each attempt', async () => {
    const { url, got } = await receiver(500, 200);
    expect((await failureOf(send({ url, key: KEY }))).nonRetryable).toBe(false);
    await send({ url, key: KEY });
    const ids = got.map(({ headers }) => headers['webhook-id']);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toMatch(/^msg_[0-9a-f]{32}$/);
  });

  test.each([
    [301, false],
    [307, false],
    [400, true],
    [401, true],
    [404, true],
    [410, true],
    [408, false],
    [425, false],
    [429, false],
    [500, false],
    [503, false],
  ])('that gets %i is rejected permanently: %s', async (status, isFinal) => {
    const { url, got } = await receiver(status);
    const failure = await failureOf(send({ url, key: KEY }));
    expect(failure).toMatchObject({ type: 'NotifyFailed', nonRetryable: isFinal });
    expect(failure.message).toContain(`answered ${status}`);
    expect(failure.message).not.toContain('no words of mine');
    // Redirects are not followed either.
    expect(got).toHaveLength(1);
  });

  test('is retried if no server answers', async () => {
    const server = await httpServer(() => undefined);
    await server.close();
    const failure = await failureOf(send({ url: server.url, key: KEY }));
    expect(failure.nonRetryable).toBe(false);
  });

  test('is abandoned after 10 s, and its connection is closed', { timeout: 20_000 }, async () => {
    let closed = 0;
    const server = await httpServer((request) => {
      request.on('close', () => (closed += 1));
    });
    onTestFinished(() => server.close());
    const begin = performance.now();
    const failure = await failureOf(send({ url: server.url, key: KEY }));
    expect(performance.now() - begin).toBeLessThan(13_000);
    expect(failure.nonRetryable).toBe(false);
    await expect.poll(() => closed).toBe(1);
  });
});

describe('a function', () => {
  test('receives the notice', async () => {
    const got: Notice[] = [];
    await send((notice) => void got.push(notice));
    expect(got).toMatchObject([{ run: 'run-1', agent: 'clerk', turn: 2, request: { id: 'r1' } }]);
    expect(JSON.stringify(got)).not.toContain('of the call');
  });

  test('that throws is retried, and its error leaks no secrets', async () => {
    const failure = await failureOf(
      send(() => {
        throw new Error('https://user:geheim@mail.example is down');
      }),
    );
    expect(failure.nonRetryable).toBe(false);
    expect(failure.message).toBe('notify: https://[redacted]@mail.example is down');
  });
});

test('a worker without notify leaves notices to other workers', async () => {
  const failure = await failureOf(send());
  expect(failure).toMatchObject({
    nonRetryable: false,
    message: expect.stringContaining('no `notify`'),
  });
});
