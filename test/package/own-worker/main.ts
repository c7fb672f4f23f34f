// A project that already has a worker and adds agents to it: `main.js ADDRESS QUEUE`. Prints the
// result.
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { defineAgent, defineTool } from 'perdure';
import type { Outcome } from 'perdure/client';
import { perdurePlugin } from 'perdure/worker';
import { replyCall, replyText, scriptedModel } from 'perdure/testing';
import { z } from 'zod';
import * as activities from './activities.js';

const [, , address = '', taskQueue = ''] = process.argv;

const add = defineTool({
  name: 'add',
  description: 'adds two numbers',
  input: z.object({ a: z.number(), b: z.number() }),
  effect: 'read',
  execute: async ({ a, b }) => a + b,
});
const clerk = defineAgent({
  name: 'clerk',
  instructions: 'Add numbers.',
  model: 'script',
  tools: [add],
});
const model = scriptedModel([replyCall('add', { a: 17, b: 25 }), replyText('It is 42.')]);

const connection = await NativeConnection.connect({ address });
const worker = await Worker.create({
  connection,
  taskQueue,
  workflowsPath: fileURLToPath(new URL('./workflows.js', import.meta.url)),
  activities,
  plugins: [perdurePlugin({ agents: [clerk], models: { script: model } })],
});
const client = new Client({ connection: await Connection.connect({ address }) });

const result = await worker.runUntil(async () => {
  const start = async (type: string, ...args: readonly unknown[]): Promise<unknown> =>
    await client.workflow.execute(type, {
      taskQueue,
      workflowId: `${taskQueue}-${type}`,
      args: [...args],
    });
  return {
    outcome: (await start('agent', { agent: 'clerk', message: '17 + 25?' })) as Outcome,
    greeting: await start('greet', 'you'),
    stack: await start('fail'),
  };
});
model.assertConsumed();
await client.connection.close();
await connection.close();
console.log(JSON.stringify(result));
