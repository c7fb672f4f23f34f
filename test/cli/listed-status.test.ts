import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openClient } from '../../src/client/create-client.js';
import { formatDateTime } from '../../src/cli/format/format.js';
import { commandLine, type CommandEnd } from '../support/command.js';
import { portOf } from '../support/port-of.js';

const command = await commandLine();
/** A provider that refuses each key. */
let provider: Server;

beforeAll(async () => {
  provider = createServer((_, response) => {
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end('{"error":{"message":"no such key"}}');
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
});
afterAll(() => provider.close());

/** Returns a function for commands on a task queue without another worker. */
function lonely(env: Readonly<Record<string, string>>) {
  const queue = `listed-${randomUUID()}`;
  const place = ['--address', inject('temporalAddress'), '--task-queue', queue, '--json'];
  return async (...args: readonly string[]): Promise<CommandEnd> =>
    await command.here([...args, ...place], { env }).ended;
}

type Lonely = ReturnType<typeof lonely>;

/** Expects that the list has this status of a run, without a worker. */
async function expectListed(perdure: Lonely, id: string, expected: object): Promise<void> {
  // The server lists what a workflow has written a moment later.
  await expect
    .poll(
      async () => {
        const { stdout } = await perdure('list', '--id-prefix', id);
        const { rows } = JSON.parse(stdout) as { readonly rows: readonly unknown[] };
        return rows;
      },
      { timeout: 5_000 },
    )
    .toEqual([expect.objectContaining({ id, ...expected })]);
}

test('a run that blocks under the worker of the command is listed as blocked afterward', async () => {
  const env = { OPENAI_BASE_URL: `http://127.0.0.1:${portOf(provider)}` };
  // The worker ended before or after the workflow wrote its status: six runs are hardly all in time.
  for (let run = 0; run < 6; run += 1) {
    const perdure = lonely(env);
    const id = `listed-${randomUUID()}`;
    expect((await perdure('run', 'files', 'Hello', '--id', id)).code).toBe(4);
    await expectListed(perdure, id, { status: 'blocked', reason: 'credentials' });
  }
}, 120_000);

test('`status` and `list` say the same time for the start of a run that waited for its worker', async () => {
  const queue = `listed-${randomUUID()}`;
  const place = ['--address', inject('temporalAddress'), '--task-queue', queue];
  const id = `listed-${randomUUID()}`;
  const env = { PERDURE_MODEL: 'demo' };
  const perdure = async (...args: readonly string[]): Promise<CommandEnd> =>
    await command.here([...args, ...place], { env }).ended;
  const client = await openClient({
    address: inject('temporalAddress'),
    taskQueue: queue,
    env: {},
  });
  await client.start('files', { id, message: 'Hello' });
  await client.disconnect();
  // Longer than the seconds in which times are shown.
  await sleep(2_100);
  expect((await perdure('attach', id)).code).toBe(0);
  const { rows } = JSON.parse((await perdure('list', '--id-prefix', id, '--json')).stdout) as {
    readonly rows: readonly { readonly startedAt: string }[];
  };
  const started = formatDateTime(Date.parse(rows[0]?.startedAt ?? ''));
  expect((await perdure('status', id)).stdout).toContain(`${started}, `);
});
