/** The namespace that is used if none is named. */
export const DEFAULT_NAMESPACE = 'default';

/** The embedded server listens only on the loopback interface. */
export const LOOPBACK = '127.0.0.1';
/** The port of a Temporal server by convention. */
export const DEFAULT_PORT = 7233;
/** The distance of the Temporal UI's port from the gRPC port of a dev server. */
export const UI_PORT_OFFSET = 1000;

/** How many hours the server keeps closed runs. The dev server's own default is 24. */
export const RETENTION_HOURS = 720;

/**
 * The dynamic configuration of the embedded server, the same as
 * `docker/dynamicconfig/perdure.yaml`.
 *
 * - Poll rates: by default, a shard delivers tasks in ticks of 50 ms, four times the total duration
 *   of an agent's step.
 * - Partitions: with few workers, more than one partition per task queue only adds forwarding.
 * - Buffered queries: with the default of 1, a second query during a workflow task waits for more
 *   than a second.
 * - Workflow task timeout: how long a run makes no progress if its worker is killed during a task.
 * - Reuse interval of workflow ids: with the default of 1 s, a run that continues in a new segment
 *   soon after the last one started must wait for the rest of that second.
 * - Worker commands: a cancellation reaches an activity at once, not with its next heartbeat.
 */
export const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': 2000,
  'history.transferProcessorMaxPollHostRPS': 5000,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'history.MaxBufferedQueryCount': 100,
  'history.defaultWorkflowTaskTimeout': '5s',
  'system.enableCancelActivityWorkerCommand': true,
  'frontend.WorkerCommandsEnabled': true,
  'history.workflowIdReuseMinimalInterval': '100ms',
} as const satisfies Record<string, string | number | boolean>;

/**
 * How durable commits are. `normal` loses nothing if a process dies, but a power failure may lose
 * the last commits. `full` flushes each commit to the disk, and a step takes about a quarter
 * longer.
 */
export type Durability = 'normal' | 'full';

/** Returns the SQLite pragmas of the database file. */
export function sqlitePragmas(durability: Durability): Readonly<Record<string, string>> {
  return { journal_mode: 'wal', synchronous: durability };
}
