// The worker of a package that this folder compares, in its own process, with the settings of all sides. PEER names
// its module, which has the plugin; its workflows are in the file beside it.
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

Runtime.install({ logger: new DefaultLogger('ERROR') });
const { ADDRESS: address, QUEUE: taskQueue, PEER: peer, OPENAI_BASE_URL: baseURL } = process.env;
const { createPlugin } = await import(`./${peer}/plugin.js`);
const plugins = [await createPlugin(baseURL)];
const connection = await NativeConnection.connect({ address });
const worker = await Worker.create({
  connection,
  taskQueue,
  workflowsPath: new URL(`./${peer}/workflow.js`, import.meta.url).pathname,
  // With today's dependencies, some bundles are split into chunks, which a workflow cannot load.
  bundlerOptions: {
    webpackConfigHook: (config) => ({
      ...config,
      output: { ...config.output, publicPath: '' },
      module: { ...config.module, parser: { javascript: { dynamicImportMode: 'eager' } } },
    }),
  },
  plugins,
  activities: { work },
  workflowTaskPollerBehavior: { type: 'autoscaling' },
  activityTaskPollerBehavior: { type: 'autoscaling' },
  stickyQueueScheduleToStartTimeout: 5_000,
  shutdownGraceTime: 5_000,
});
const stopped = worker.run().finally(() => connection.close());
// Runs are started by the package's own client, since its plugin adds headers.
const client = new Client({ connection: await Connection.connect({ address }), plugins });
process.on('message', async (message) => {
  if (message === 'read') tell('read');
  if (message.start !== undefined) {
    const { workflowId, input } = message.start;
    await client.workflow.start('peer', { taskQueue, workflowId, args: [input] });
    process.send({ event: `started ${workflowId}` });
  }
});
const end = () => worker.shutdown();
process.once('SIGTERM', end);
process.once('disconnect', end);
tell('ready');
await stopped;
process.exit(0);

/** The tool of every side: its result is derived from its arguments, as in `bench/conversation.ts`. */
async function work({ name, step, part, bytes }) {
  return `<${name} result ${step}.${part}>`.padEnd(bytes, ' lorem ipsum dolor sit amet');
}

function tell(event) {
  const { user, system } = process.cpuUsage();
  const cpuMs = (user + system) / 1_000;
  process.send({ event, at: Date.now(), cpuMs, rssBytes: process.memoryUsage.rss() });
}
