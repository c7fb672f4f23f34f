/**
 * `node --import tsx bench/rate/measure.ts --minutes 5`: 40 runs on two worker processes share an allowance of
 * 60 requests a minute at a provider that counts in a window that slides, in fixed windows, and by the second,
 * all at once, and refuses with 429. Prints how many requests were refused and how much of the allowance
 * was used. `--kill` also kills one worker after half of the time.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { createClient } from '../../src/client.js';
import { startTestServer } from '../../src/server/test-server.js';
import { replyCall, replyError } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import { COUNTS } from '../../test/support/allowances.js';
import { startChild } from '../kit/child.js';

const MINUTE_MS = 60_000;
const ALLOWANCE = { requests: 60, perMs: MINUTE_MS };
const RUNS = 40;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    kill: { type: 'boolean', default: false },
  },
});
const measuredMs = Number(values.minutes) * MINUTE_MS;

const server = await startTestServer();
const stub = await startStub();
const times: number[] = [];
const refused: Record<string, number> = {};
const providers = Object.entries(COUNTS).map(([kind, open]) => [kind, open(ALLOWANCE)] as const);
stub.answer(() => {
  const at = performance.now();
  times.push(at);
  const by = providers.filter(([, refuses]) => refuses(at)).map(([kind]) => kind);
  for (const kind of by) refused[kind] = (refused[kind] ?? 0) + 1;
  if (by.length > 0) return replyError(429, { message: `too many ${by.join(' and ')}` });
  return replyCall('look', { at });
});

const env = {
  ...Object.fromEntries(Object.entries(server.env).map(([name, value]) => [name, value ?? ''])),
  ADDRESS: server.address,
  BASE_URL: stub.baseUrl,
  OPENAI_API_KEY: 'x',
  REQUESTS: String(ALLOWANCE.requests),
};
const child = async () => await startChild(new URL('worker-child.ts', import.meta.url), { env });
const workers = [await child(), await child()];
const client = await createClient({ env: server.env, taskQueue: 'rate' });
await Promise.all(Array.from({ length: RUNS }, () => client.start('walker', 'walk')));
while (times.length === 0) await pause(50);
// After the first block, both workers have their share.
await pause(5_000);
const from = performance.now();
if (values.kill) {
  await pause(measuredMs / 2);
  await workers.pop()?.kill();
}
await pause(from + measuredMs - performance.now());
const used = times.filter((at) => at >= from).length;
const allowed = (ALLOWANCE.requests * measuredMs) / MINUTE_MS;
const minutes = Array.from(
  { length: measuredMs / MINUTE_MS },
  (_, index) =>
    times.filter((at) => Math.floor((at - from) / MINUTE_MS) === index && at >= from).length,
);
const connection = await Connection.connect({ address: server.address });
const holder = await new Client({ connection }).workflow.getHandle('rate:m').describe();
console.log(
  JSON.stringify({
    used,
    allowed,
    share: used / allowed,
    refused,
    minutes,
    events: holder.historyLength,
    killed: values.kill,
  }),
);
await connection.close();
await client.disconnect();
await Promise.all(workers.map((worker) => worker.kill()));
await stub.close();
await server.close();
process.exit(0);
