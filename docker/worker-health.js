// Exits with 0 if the container's worker has polled the server recently, otherwise with 1.
import { hostname } from 'node:os';
import { Connection } from '@temporalio/client';
import { connectionTarget } from '../dist/connection.js';

/** An idle worker polls again after a minute at the latest. */
const LATELY_MS = 150_000;

const { options, namespace } = connectionTarget({});
const connection = await Connection.connect({ ...options, connectTimeout: 10_000 });
const { pollers } = await connection.workflowService.describeTaskQueue({
  namespace,
  taskQueue: { name: process.env.PERDURE_TASK_QUEUE ?? 'perdure' },
});
await connection.close();
const asked = pollers
  .filter(({ identity }) => identity.endsWith(`@${hostname()}`))
  .map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000);
const alive = asked.some((time) => Date.now() - time < LATELY_MS);
console.log(alive ? 'the worker polls' : `no worker of ${hostname()} has polled lately`);
process.exitCode = alive ? 0 : 1;
