// The worker of the bare loop, in its own process and with perdure's worker settings.
import { NativeConnection, Worker } from '@temporalio/worker';
import { installRuntime } from '../../src/worker/log.js';
import { serveAsChild } from '../kit/child-side.js';
import { bareActivities } from './activities.js';

installRuntime('ERROR');
const { env } = process;
const connection = await NativeConnection.connect({ address: env['ADDRESS'] ?? '' });
const worker = await Worker.create({
  connection,
  taskQueue: env['QUEUE'] ?? '',
  workflowBundle: { codePath: env['BUNDLE'] ?? '' },
  activities: bareActivities(env['OPENAI_BASE_URL'] ?? ''),
  workflowTaskPollerBehavior: { type: 'autoscaling' },
  activityTaskPollerBehavior: { type: 'autoscaling' },
  stickyQueueScheduleToStartTimeout: 5_000,
  shutdownGraceTime: 5_000,
});
const stopped = worker.run().finally(() => connection.close());
await serveAsChild({
  stopped,
  async shutdown() {
    worker.shutdown();
    await stopped;
  },
});
