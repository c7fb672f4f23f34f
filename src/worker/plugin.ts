import type { BundleOptions, WorkerOptions, WorkerPlugin, BundlerPlugin } from '@temporalio/worker';
import { defineConfig, type Config } from '../config.js';
import type { SharedWorkerOptions, WorkerParts } from './parts.js';
import { WORKFLOW_MODULES } from './workflow-modules.js';

export interface PluginOptions extends Pick<Config, 'agents' | 'models'>, SharedWorkerOptions {}

/** Fits `plugins` of `Worker.create` and of `bundleWorkflowCode`. */
export type PerdurePlugin = WorkerPlugin & BundlerPlugin;

/**
 * Agents for a worker of one's own: `Worker.create({ workflowsPath, taskQueue, plugins: [perdurePlugin({
 * agents })] })`, where the workflows file holds `export { agent } from 'perdure/workflow'`. Adds the
 * activities and the payload converter; says how to poll and how to end where that was left open. One plugin may serve
 * several workers. Who bundles before gives it to `bundleWorkflowCode` too. Throws for agents or
 * models that cannot work.
 *
 * @example
 * ```ts
 * import { fileURLToPath } from 'node:url';
 * import { Worker } from '@temporalio/worker';
 * import { defineAgent, perdurePlugin } from 'perdure';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'demo' });
 * const worker = await Worker.create({
 *   // It holds: export { agent } from 'perdure/workflow';
 *   workflowsPath: fileURLToPath(new URL('./workflows.js', import.meta.url)),
 *   taskQueue: 'orders',
 *   plugins: [perdurePlugin({ agents: [clerk] })],
 * });
 * await worker.run();
 * ```
 */
export function perdurePlugin({ agents, models, ...options }: PluginOptions): PerdurePlugin {
  const config = defineConfig({ agents, ...(models && { models }) });
  /** Of each worker, by one of the activities that it was given. */
  const parts = new WeakMap<object, Pick<WorkerParts, 'stop' | 'close'>>();
  return {
    name: NAME,
    async configureWorker(given) {
      const [{ workerParts }, { assertOneSdk, assertSameSdk }] = await Promise.all([
        import('./parts.js'),
        import('../temporal/sdk.js'),
      ]);
      assertOneSdk();
      if (given.workflowsPath !== undefined) assertSameSdk(given.workflowsPath);
      const { activities, stop, close } = workerParts(config, options);
      parts.set(activities.loadAgent, { stop, close });
      return {
        ...given,
        ...(await settings(given)),
        activities: merged(given.activities ?? {}, activities),
      };
    },
    configureBundler,
    async runWorker(worker, next) {
      const own = parts.get(worker.options.activities.get('loadAgent') ?? worker);
      if (own === undefined) return await next(worker);
      (await import('./parts.js')).whenShutDown(worker, own.stop);
      await next(worker).finally(own.close);
    },
  };
}

const NAME = 'perdure';

/** Our settings, apart from what the worker's own options say, by whichever name. */
async function settings(given: WorkerOptions): Promise<Partial<WorkerOptions>> {
  const { WORKER_SETTINGS } = await import('./parts.js');
  const other: Readonly<Record<string, unknown>> = {
    workflowTaskPollerBehavior: given.maxConcurrentWorkflowTaskPolls,
    activityTaskPollerBehavior: given.maxConcurrentActivityTaskPolls,
  };
  const theirs = Object.entries(given).filter(([, value]) => value !== undefined);
  const open = Object.entries(WORKER_SETTINGS).filter(([name]) => other[name] === undefined);
  return Object.fromEntries([...open, ...theirs]);
}

function merged(theirs: object, ours: object): object {
  const clash = Object.keys(ours).find((name) => name in theirs);
  if (clash === undefined) return { ...theirs, ...ours };
  throw new Error(
    `plugin ${NAME}: this worker has an activity "${clash}" already, and runs of agents know theirs ` +
      'by that name; rename yours, or give the plugin only once (worker or connection)',
  );
}

function configureBundler(given: BundleOptions): BundleOptions {
  const { payloadConverterPath, preloadModules = [], logger } = given;
  if (payloadConverterPath !== undefined) {
    logger?.warn(
      `plugin ${NAME}: the worker's own payload converter (${payloadConverterPath}) is kept. What it ` +
        'cannot read fails the workflow task of a run of an agent again and again, instead of the run',
    );
  }
  return {
    ...given,
    payloadConverterPath: payloadConverterPath ?? WORKFLOW_MODULES.payloadConverter(),
    preloadModules: [...preloadModules, WORKFLOW_MODULES.engine()],
  };
}
