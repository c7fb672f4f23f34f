import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { createClient, type PerdureClient } from '../../src/index.js';

/** No call may reach the server. */
const READS_NOTHING = { loadedDataConverter: { payloadCodecs: [] } };
const unreachable = { workflow: {}, schedule: {}, connection: {}, options: READS_NOTHING };

const first = async (read: AsyncIterable<unknown>): Promise<unknown> =>
  await read[Symbol.asyncIterator]().next();

const CASES: readonly [string, (client: PerdureClient) => Promise<unknown>, RegExp][] = [
  [
    'a message under another name',
    (client) => client.send('desk-1', { text: 'hi' } as never),
    /^text: expected one of message, id, .*; give the text as message$/,
  ],
  [
    'a field of a message that is misspelled',
    (client) => client.send('desk-1', { mesage: 'hi' } as never),
    /^mesage: expected a field of a message; did you mean message\?$/,
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
    'an option of a result that is misspelled',
    (client) => client.result('desk-1', { trun: 1 } as never),
    /^result: "trun" is not an option; did you mean turn\?$/,
  ],
  [
    'an option of a transcript that is misspelled',
    (client) => client.transcript('desk-1', { form: 1 } as never),
    /^transcript: "form" is not an option; did you mean from\?$/,
  ],
  [
    'an option of calls that they do not have',
    (client) => client.calls('desk-1', { side: true } as never),
    /^calls: "side" is not an option; the options are from, to$/,
  ],
  [
    'an option of events that is misspelled',
    (client) => first(client.events('desk-1', { fro: '1' } as never)),
    /^events: "fro" is not an option; did you mean from\?$/,
  ],
  [
    'an option of a stream that is misspelled',
    (client) => first(client.stream('desk-1', { aftr: '1' } as never)),
    /^stream: "aftr" is not an option; did you mean after\?$/,
  ],
  [
    'an option of a text that is misspelled',
    (client) => first(client.text('desk-1', { onreset: 1 } as never)),
    /^text: "onreset" is not an option; did you mean onReset\?$/,
  ],
  [
    'an option of an attachment that is misspelled',
    (client) => client.attach(new Uint8Array(1), { mediatype: 'x' } as never),
    /^attach: "mediatype" is not an option; did you mean mediaType\?$/,
  ],
  [
    'a filter of requests that is misspelled',
    (client) => client.requests({ agnet: 'desk' } as never),
    /^requests: "agnet" is not an option; did you mean agent\?$/,
  ],
  [
    'an option of pauseAll that is misspelled',
    (client) => client.pauseAll({ agent: 'desk', signl: 1 } as never),
    /^pauseAll: "signl" is not an option; did you mean signal\?$/,
  ],
  [
    'a field of a decision that is misspelled',
    (client) =>
      client.resolve('desk-1', { request: 'r1', digest: 'd', as: 'some', action: [] } as never),
    /^decision: "action" is not an option; did you mean actions\?$/,
  ],
  [
    'a field of a grant that is misspelled',
    (client) => {
      const grant = { scope: 'tool', wher: {} };
      return client.resolve('desk-1', [
        { request: 'r1', digest: 'd', as: 'approve', grant },
      ] as never);
    },
    /^decisions\[0\]\.grant: "wher" is not an option; did you mean where\?$/,
  ],
  [
    'an option of a fork that belongs into another one',
    (client) => client.fork('desk-1', { node: 'judge' } as never),
    /^fork: "node" is not an option; did you mean at: \{ node: … \}\?$/,
  ],
  [
    'a place of a fork that is none',
    (client) => client.fork('desk-1', { at: 'two' } as never),
    /^fork\.at: expected the number of a message, or \{ node \} for a node, got "two"$/,
  ],
  [
    'a text in place of bytes',
    (client) => client.attach('hello' as never),
    /^attach: expected bytes as a Uint8Array, got "hello"$/,
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
