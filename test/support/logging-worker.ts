// A worker as a process of its own, with the log that its program has. Sends `ready`.
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { z } from 'zod';
import { defineAgent } from '../../src/agents/define-agent.js';
import { defineConfig } from '../../src/config.js';
import { type Model, ModelError } from '../../src/models/model.js';
import { replyCall, replyText } from '../../src/testing/replies.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { createWorker } from '../../src/worker/create-worker.js';
import { perdurePlugin } from '../../src/worker/plugin.js';

const { ADDRESS: address = '', QUEUE: taskQueue = '', BUNDLE: codePath = '', HOW } = process.env;
const input = z.object({ what: z.string() });
const tools = [
  defineTool({
    name: 'fail',
    description: 'fails',
    input,
    effect: 'keyed',
    execute: async ({ what }) => {
      throw new Error(`no ${what}`);
    },
  }),
  defineTool({
    name: 'note',
    description: 'logs',
    input,
    effect: 'read',
    execute: async ({ what }, context) => {
      context.log(`noted ${what}`, { what });
      return 'noted';
    },
  }),
];
/** Does what a message says: `fail WORD`, `note WORD`, or `break WORD`. */
const model: Model = {
  async call({ messages }) {
    const last = messages.at(-1);
    if (last?.role !== 'user') return replyText('done');
    const [name = '', what = ''] = last.text.split(' ');
    if (name !== 'break') return replyCall(name, { what });
    throw new ModelError(`refused ${what}`, { kind: 'request', type: 'refused' });
  },
};
const agents = [defineAgent({ name: 'clerk', instructions: 'x', model: 'm', tools })];
const models = { m: model };
const workflowBundle = { codePath };

if (HOW === 'own runtime') {
  const telemetryOptions = { logging: { forward: {} } };
  Runtime.install({ logger: new DefaultLogger('INFO'), telemetryOptions });
}
if (HOW === 'plugin') {
  const connection = await NativeConnection.connect({ address });
  const plugins = [perdurePlugin({ agents, models })];
  const worker = await Worker.create({ connection, taskQueue, workflowBundle, plugins });
  process.send?.('ready');
  await worker.run();
  await connection.close();
} else {
  const config = defineConfig({ agents, models });
  const worker = await createWorker({ config, address, taskQueue, workflowBundle });
  process.send?.('ready');
  await worker.stopped;
}
