/** Namespace that is used when nobody names one. */
export const DEFAULT_NAMESPACE = 'default';

/** Where a Temporal server listens by convention; only ever on the loopback interface. */
export const LOOPBACK = '127.0.0.1';
export const DEFAULT_PORT = 7233;
/** A Temporal dev server's page is this far above its gRPC port. */
export const UI_PORT_OFFSET = 1000;

/** Hours for which the server keeps closed runs (the dev server's own default is 24). */
export const RETENTION_HOURS = 720;

/**
 * Dynamic configuration of the embedded server; `docker/dynamicconfig/perdure.yaml` holds the same.
 *
 * - the poll rates: by default one shard hands tasks over in ticks of 50 ms, which is four times
 *   what a step of an agent needs altogether
 * - one partition per task queue: with a handful of workers more of them only add forwarding
 * - the buffered queries: with the default of 1 a second query during one workflow task waits for
 *   more than a second
 * - the workflow task timeout: how long a run stands still when its worker is killed inside one
 * - the interval between two runs of one id: with the default of 1 s a run that goes on in a new
 *   segment soon after the last one began stands still for the rest of it
 * - the worker commands: a cancellation reaches an activity at once, not with its next heartbeat
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
 * What survives: `normal` loses nothing when a process dies, but a power cut may take the last
 * commits; `full` writes each commit through to the disk and takes about a quarter longer per step.
 */
export type Durability = 'normal' | 'full';

/** SQLite pragmas of the database file. */
export function sqlitePragmas(durability: Durability): Readonly<Record<string, string>> {
  return { journal_mode: 'wal', synchronous: durability };
}
