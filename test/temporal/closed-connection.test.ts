import { once } from 'node:events';
import { createServer } from 'node:http2';
import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHANNEL_OPTIONS } from '../../src/temporal/grpc.js';
import { portOf } from '../support/port-of.js';

/** A server that is busy: every call is to be repeated. */
const busy = createServer();
const UNAVAILABLE = {
  ':status': 200,
  'content-type': 'application/grpc',
  'grpc-status': '14',
};
let connection: Connection;

beforeAll(async () => {
  await once(busy.listen(0, '127.0.0.1'), 'listening');
  connection = Connection.lazy({ address: `127.0.0.1:${portOf(busy)}`, ...CHANNEL_OPTIONS });
});
afterAll(() => void busy.close());

// The SDK alone throws in its timer, which ends the process, and leaves the caller waiting.
test('a call that is to be repeated fails when its connection is closed', async () => {
  busy.once('stream', (stream) => {
    stream.respond(UNAVAILABLE, { endStream: true });
    stream.once('close', () => void connection.close());
  });
  await expect(connection.workflowService.getSystemInfo({})).rejects.toMatchObject({
    code: 1,
    details: 'Channel has been shut down',
  });
});

test('a call of a connection that is closed already fails as in the SDK', async () => {
  await expect(connection.workflowService.getSystemInfo({})).rejects.toThrow(
    'Channel has been shut down',
  );
});
