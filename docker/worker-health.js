// The health check of the container: exits with 0 if its worker has polled the server recently, else with 1.
import { hostname } from 'node:os';
import { Connection } from '@temporalio/client';
import { loadConfig } from '../dist/cli/input/load-config.js';
import { connectionTarget } from '../dist/temporal/connection.js';
import { resolveTaskQueue } from '../dist/temporal/task-queue.js';

/** An idle worker polls again within a minute. */
const RECENT_MS = 150_000;

const config = await loadConfig({ folder: process.cwd(), env: process.env });
const { options, namespace } = connectionTarget({});
const connection = await Connection.connect({ ...options, connectTimeout: 10_000 });
const { pollers } = await connection.workflowService.describeTaskQueue({
  namespace,
  taskQueue: { name: resolveTaskQueue(config, process.env) },
});
await connection.close();
const asked = pollers
  .filter(({ identity }) => identity.endsWith(`@${hostname()}`))
  .map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000);
const alive = asked.some((time) => Date.now() - time < RECENT_MS);
console.log(alive ? 'the worker polls' : `no worker of ${hostname()} has polled recently`);
process.exitCode = alive ? 0 : 1;
