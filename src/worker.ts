import type { RunningWorker } from './worker/create-worker.js';
import type { WorkerOptions } from './worker/options.js';

// Workers
export type { RunningWorker } from './worker/create-worker.js';
export type { PluginOptions, SharedWorkerOptions, WorkerOptions } from './worker/options.js';
export type { DeploymentOptions, DeploymentVersion, WorkerBuild } from './worker/deployment.js';
export { perdurePlugin, type PerdurePlugin } from './worker/plugin.js';
export type { SegmentSize } from './core/state/state.js';

// Live streams
export type { LiveOptions, LiveLimits } from './live/live-options.js';

// Storage
export { s3Stores, type S3Options } from './storage/s3-stores.js';
export type { Stores, LockedTool, ToolForm, ToolLock } from './storage/tool-lock.js';
export type {
  BlobStore,
  BlobErasure,
  StoredBlob,
  Archive,
  ArchiveErasure,
  ArchivedHistory,
  ArchivedRun,
  ArchivedText,
} from './storage/blob-store.js';

// Errors
export { DeploymentError, LiveOptionsError, SdkCopiesError } from './core/errors.js';
export {
  ArchiveError,
  BlobError,
  type ArchiveErrorKind,
  type ArchiveErrorOptions,
  type BlobErrorKind,
  type BlobErrorOptions,
} from './storage/blob-store.js';

/**
 * Starts a worker. Resolves when it polls or, with a `deployment`, when its build is the current
 * one. Rejects with an `InputError` (`input`) if an option is invalid, with a `LiveOptionsError`
 * (`live_options`) if it cannot serve live streams with these options, with a `NoServerError`
 * (`no_server`) if no server answers, with a `SdkCopiesError` (`sdk_copies`) if the process has two
 * copies of Temporal's SDK, and with a `DeploymentError` (`deployment`) if the build cannot be made
 * the current one.
 *
 * Importing this function does not load Temporal's native worker; the first call does.
 *
 * @example
 * ```ts
 * import { createWorker, defineAgent, defineConfig } from 'perdure';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'demo' });
 * const worker = await createWorker({ config: defineConfig({ agents: [clerk] }) });
 * process.once('SIGTERM', () => void worker.shutdown());
 * await worker.stopped;
 * ```
 */
export async function createWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { createWorker: create } = await import('./worker/create-worker.js');
  return await create(options);
}
export type { BudgetOptions } from './config.js';
