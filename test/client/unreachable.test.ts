import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openClient } from '../../src/client/create-client.js';
import type { PerdureClient } from '../../src/client/client-types.js';
import { NoServerError, NotDeliveredError } from '../../src/core/errors.js';
import { unreachable } from '../../src/temporal/grpc.js';

/** Nothing listens there: the port is reserved. */
const ADDRESS = '127.0.0.1:1';

let home: string;
let connection: Connection;
let client: PerdureClient;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'perdure-unreachable-'));
  // Without the retries of the SDK, which take 20 s.
  connection = Connection.lazy({ address: ADDRESS, interceptors: [] });
  client = await openClient({ client: new Client({ connection }), home, env: {} });
});
afterAll(async () => {
  await connection.close();
  await rm(home, { recursive: true, force: true });
});

type Call = () => Promise<unknown> | AsyncIterable<unknown>;
type Calls<T> = Readonly<Record<Exclude<keyof T, symbol>, Call | null>>;

const briefly = { within: 1_100 };
const decision = { request: 'r1', digest: 'x', as: 'deny' } as const;

/** Every method; null: it needs no server. A method that is missing here does not compile. */
const CALLS: Calls<Omit<PerdureClient, 'schedule'>> = {
  start: () => client.start('a', 'x', { id: 'run-1' }),
  run: () => client.run('a', 'x'),
  attach: null,
  fork: () => client.fork('run-1', { message: 'x' }),
  send: () => client.send('run-1', 'x', briefly),
  result: () => client.result('run-1'),
  status: () => client.status('run-1'),
  transcript: () => client.transcript('run-1'),
  calls: () => client.calls('run-1'),
  turns: () => client.turns('run-1'),
  events: () => client.events('run-1'),
  stream: () => client.stream('run-1'),
  text: () => client.text('run-1'),
  list: () => client.list(),
  pause: () => client.pause('run-1', briefly),
  resume: () => client.resume('run-1', briefly),
  cancel: () => client.cancel('run-1'),
  close: () => client.close('run-1', briefly),
  setLimits: () => client.setLimits('run-1', { run: { steps: 1 } }, briefly),
  requests: () => client.requests(),
  request: () => client.request('run-1', 'r1'),
  resolve: () => client.resolve('run-1', decision, briefly),
  revoke: () => client.revoke('run-1', 'g1', briefly),
  undo: () => client.undo('run-1', briefly),
  pauseAll: () => client.pauseAll({ agent: 'a' }),
  resumeAll: () => client.resumeAll({ agent: 'a' }),
  batch: () => client.batch('a', ['x'], { id: 'b' }),
  disconnect: null,
};

const TIME = '2026-11-21T00:00:00Z';
const SCHEDULES: Calls<PerdureClient['schedule']> = {
  create: () => client.schedule.create({ id: 's', agent: 'a', message: 'x', every: '1h' }),
  update: () => client.schedule.update('s', { message: 'y' }),
  list: () => client.schedule.list(),
  describe: () => client.schedule.describe('s'),
  pause: () => client.schedule.pause('s'),
  resume: () => client.schedule.resume('s'),
  trigger: () => client.schedule.trigger('s'),
  backfill: () => client.schedule.backfill('s', { from: TIME, to: TIME }),
  delete: () => client.schedule.delete('s'),
};

/** Returns the error of a call. */
async function failureOf(call: Call): Promise<unknown> {
  try {
    const made = call();
    if (made instanceof Promise) return await made;
    for await (const _ of made) break;
    return 'no error';
  } catch (error) {
    return error;
  }
}

describe('at a server that does not answer', () => {
  test('each method of a client is tried', () => {
    const { schedule: _, ...own } = client;
    expect(Object.keys(CALLS).toSorted()).toEqual(Object.keys(own).toSorted());
    expect(Object.keys(SCHEDULES).toSorted()).toEqual(Object.keys(client.schedule).toSorted());
  });

  test('that gives no reason is said in plain words', () => {
    const details = 'No connection established. Last error: null. Resolution note: ';
    const error = Object.assign(new Error(`14 UNAVAILABLE: ${details}`), {
      code: 14,
      details,
      metadata: {},
    });
    expect(unreachable(ADDRESS, error).message).toContain(
      `no Temporal server answers at ${ADDRESS} (it accepts no connection). Start it`,
    );
  });

  const all = [
    ...Object.entries(CALLS),
    ...Object.entries(SCHEDULES).map(([name, call]) => [`schedule.${name}`, call] as const),
  ].flatMap(([name, call]) => (call === null ? [] : [[name, call] as const]));

  test.concurrent.each(all)('%s names the address and the fix', async (name, call) => {
    const error = await failureOf(call);
    if (NotDeliveredError.isInstance(error)) {
      expect(error.message).toMatch(
        /^no Temporal server answers at 127\.0\.0\.1:1 \((?:.+ECONNREFUSED|it accepts no connection\))/,
      );
      expect(error.message).toMatch(/Start it, or name another one .+\. It /);
      return;
    }
    expect(error).toBeInstanceOf(NoServerError);
    const { message } = error as NoServerError;
    expect(message.startsWith(`client.${name}: no Temporal server answers at ${ADDRESS} (`)).toBe(
      true,
    );
    expect(message).toContain('Start it, or name another one with `address` or TEMPORAL_ADDRESS.');
  });
});
