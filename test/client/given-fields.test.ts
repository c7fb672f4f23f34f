import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { createClient, type PerdureClient } from '../../src/index.js';

/** No call may reach the server. */
const READS_NOTHING = { loadedDataConverter: { payloadCodecs: [] } };
const unreachable = { workflow: {}, schedule: {}, connection: {}, options: READS_NOTHING };

const CASES: readonly [string, (client: PerdureClient) => Promise<unknown>, RegExp][] = [
  [
    'a message under another name',
    (client) => client.send('desk-1', { text: 'hi' } as never),
    /^text: expected one of message, id, .*; give the text as message$/,
  ],
  [
    'a field of a message that is misspelled',
    (client) => client.send('desk-1', { mesage: 'hi' } as never),
    /^mesage: expected a field of a message; did you mean message\? Fields: message, id, /,
  ],
  [
    'a field that a message does not have',
    (client) => client.send('desk-1', { message: 'hi', colour: 'red' } as never),
    /^colour: expected one of message, id, .*; remove it$/,
  ],
  [
    'the message of a start under another name',
    (client) => client.start('desk', { text: 'hi' } as never),
    /^text: expected one of agent, message, .*; give the text as message$/,
  ],
  [
    'a text as the input of a run',
    (client) => client.run('desk', { input: 'hello' } as never),
    /^input: expected an object with fields of the state of a graph, got "hello"; give a text as message$/,
  ],
  [
    'limits that are none',
    (client) => client.setLimits('desk-1', { steps: '50' } as never),
    /^limits\.steps: expected a positive whole number, or null for none, got "50"$/,
  ],
];

test.each(CASES)('%s is refused before the server is asked', async (_, call, message) => {
  const client = await createClient({ client: unreachable as unknown as Client });
  const refused = call(client);
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.toMatchObject({ code: 'input', name: 'InputError' });
});
