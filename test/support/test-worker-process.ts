/** A program that hosts a worker in the home of a server for tests, with an agent whose model does not exist. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, createWorker, defineAgent, defineConfig } from '../../src/index.js';

const agent = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'no-such-model' });
const config = defineConfig({ agents: [agent], taskQueue: `test-${randomUUID()}` });
const worker = await createWorker({ config });
const client = await createClient({ config });
const run = await client.start(agent, 'Hi');
while ((await client.status(run)).reports.length === 0) await pause(100);
await client.cancel(run);
await worker.shutdown();
await client.disconnect();
process.stdout.write('done\n');
