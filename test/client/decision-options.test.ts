import type { Client } from '@temporalio/client';
import { describe, expect, test } from 'vitest';
import { createClient, type PerdureClient } from '../../src/index.js';

/** No call may reach the server. */
const READS_NOTHING = { loadedDataConverter: { payloadCodecs: [] } };
const unreachable = { workflow: {}, schedule: {}, connection: {}, options: READS_NOTHING };

const METHODS: readonly [string, (client: PerdureClient, options: never) => Promise<unknown>][] = [
  ['send', (client, options) => client.send('a', 'go', options)],
  ['pause', (client, options) => client.pause('a', options)],
  ['resume', (client, options) => client.resume('a', options)],
  ['cancel', (client, options) => client.cancel('a', withTurn(options))],
  ['close', (client, options) => client.close('a', options)],
  ['setLimits', (client, options) => client.setLimits('a', { steps: 1 }, options)],
  [
    'resolve',
    (client, options) =>
      client.resolve('a', { request: 'r1', digest: 'd', as: 'approve' }, options),
  ],
  ['revoke', (client, options) => client.revoke('a', 'g1', options)],
  ['undo', (client, options) => client.undo('a', options)],
];

function withTurn(options: unknown): never {
  const given = typeof options === 'object' && options !== null;
  return (given ? { turn: true, ...options } : options) as never;
}

describe.each(METHODS)('%s', (method, call) => {
  test.each<[unknown, string]>([
    [{ withinMs: 9 }, `${method}: "withinMs" is not an option; did you mean within?`],
    ['by ann', `${method}: expected object`],
    [null, `${method}: expected object`],
  ])('rejects the options %j', async (options, message) => {
    const client = await createClient({ client: unreachable as unknown as Client });
    const refused = call(client, options as never);
    await expect(refused).rejects.toMatchObject({ code: 'input' });
    await expect(refused).rejects.toThrow(message);
  });
});

test.each<[string, string, readonly unknown[]]>([
  ['ask', 'client.send', ['a', 'go', { withinMs: 9 }]],
  ['cancelTurn', 'client.cancel(run, { turn: true })', ['a', { withinMs: 9 }]],
])('the former method %s still works and names its successor', async (name, successor, args) => {
  const warnings: string[] = [];
  const listener = ({ message }: Error): void => void warnings.push(message);
  process.on('warning', listener);
  const client = await createClient({ client: unreachable as unknown as Client });
  const called: unknown = Reflect.get(client, name);
  if (typeof called !== 'function') throw new Error(`the client has no ${name}`);
  await expect(called.apply(client, args)).rejects.toThrow('"withinMs" is not an option');
  await expect.poll(() => warnings.join()).toContain(`is now ${successor}`);
  process.off('warning', listener);
  expect(Object.keys(client)).not.toContain(name);
});

/** A client that keeps what it would send. */
function recordingClient(sent: unknown[]): Client {
  const executeUpdate = async (_: unknown, { args }: { args: readonly unknown[] }) => {
    sent.push(args[0]);
    return await Promise.resolve({ resolved: [] });
  };
  const workflow = { getHandle: () => ({ executeUpdate }) };
  const withAbortSignal = async (_: unknown, send: () => Promise<unknown>) => await send();
  return {
    ...unreachable,
    workflow,
    withAbortSignal,
    withDeadline: withAbortSignal,
  } as unknown as Client;
}

test.each<[string, (decision: never) => unknown]>([
  ['a decision', (decision) => decision],
  ['decisions', (decision) => [decision]],
])('%s cannot claim to be verified', async (_, given) => {
  const sent: unknown[] = [];
  const client = await createClient({ client: recordingClient(sent), by: 'eve' });
  const forged = { request: 'r1', digest: 'd', as: 'approve', door: 'http', groups: ['ops'] };
  await client.resolve('a', given(forged as never) as never);
  expect(sent).toEqual([given({ by: 'eve', request: 'r1', digest: 'd', as: 'approve' } as never)]);
});

test('a client in clear is refused if encryption is required', async () => {
  const encryption = {
    keys: { k1: Buffer.alloc(32, 1).toString('base64') },
    current: 'k1',
    required: true,
  };
  const made = createClient({ client: unreachable as unknown as Client, encryption });
  await expect(made).rejects.toThrow('client: expected a client with a payload codec');
});
