import type { Client } from '@temporalio/client';
import { describe, expect, test } from 'vitest';
import { createClient, type PerdureClient } from '../../src/index.js';

/** No call may reach the server. */
const unreachable = { workflow: {}, schedule: {}, connection: {}, options: {} };

const METHODS: readonly [string, (client: PerdureClient, options: never) => Promise<unknown>][] = [
  ['ask', (client, options) => client.ask('a', 'go', options)],
  ['pause', (client, options) => client.pause('a', options)],
  ['resume', (client, options) => client.resume('a', options)],
  ['cancelTurn', (client, options) => client.cancelTurn('a', options)],
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

describe.each(METHODS)('%s', (method, call) => {
  test.each<[unknown, string]>([
    [{ withinMs: 9 }, `${method}: "withinMs" is not an option; did you mean within? Options: by, `],
    ['by ann', `${method}: expected object`],
    [null, `${method}: expected object`],
  ])('rejects the options %j', async (options, message) => {
    const client = await createClient({ client: unreachable as unknown as Client });
    const refused = call(client, options as never);
    await expect(refused).rejects.toMatchObject({ code: 'input' });
    await expect(refused).rejects.toThrow(message);
  });
});
