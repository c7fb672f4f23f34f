import { readFile } from 'node:fs/promises';
import type { BundleOptions, WorkerOptions, WorkerPlugin, BundlerPlugin } from '@temporalio/worker';
import { InputError } from '../core/errors.js';
import { type Config, defineConfig } from '../config.js';
import { assertPluginOptions, type PluginOptions } from './options.js';
import type { WorkerParts } from './parts.js';
import { pollsHere } from '../live/hub.js';
import { type Keyring, keyringFrom } from '../encryption/keyring.js';
import { dataConverter, sealedFailures } from '../encryption/payload-codec.js';
import { withTraces } from '../telemetry/spans.js';
import { WORKFLOW_MODULES } from './bundle.js';

/** A plugin for `Worker.create` and for `bundleWorkflowCode`. */
export type PerdurePlugin = WorkerPlugin & BundlerPlugin;

/**
 * Makes a plugin that adds agents to your own Temporal worker. It adds the activities and the
 * payload converter, and sets the worker's polling and shutdown options where they are absent. Your
 * workflows file exports `agent` and `probe` from `perdure/workflow`: commands look for workers by
 * `probe`. It exports `send` too for schedules that send messages to open runs, `rate` for a model with
 * a rate, and `budget` for `budgets`. One plugin may serve several workers. If
 * a worker has your own bundle, `bundleWorkflowCode` also needs the plugin. Throws an `InputError`
 * if an option is invalid; creating the worker rejects with one if the file does not export
 * `agent`, and with a `SdkCopiesError` if the process has two copies of Temporal's SDK.
 *
 * @example
 * ```ts
 * import { fileURLToPath } from 'node:url';
 * import { Worker } from '@temporalio/worker';
 * import { defineAgent } from 'perdure';
 * import { perdurePlugin } from 'perdure/worker';
 *
 * const clerk = defineAgent({ name: 'clerk', instructions: 'Answer.', model: 'demo' });
 * const worker = await Worker.create({
 *   // It holds: export { agent, probe } from 'perdure/workflow';
 *   workflowsPath: fileURLToPath(new URL('./workflows.js', import.meta.url)),
 *   taskQueue: 'orders',
 *   plugins: [perdurePlugin({ agents: [clerk] })],
 * });
 * await worker.run();
 * ```
 */
export function perdurePlugin(given: PluginOptions): PerdurePlugin {
  assertPluginOptions(given);
  const { agents, models, budgets, encryption, ...options } = given;
  const config = defineConfig({
    agents,
    ...(models && { models }),
    ...(budgets && { budgets }),
    ...(encryption && { encryption }),
  });
  /** The parts of each worker, by one of its activities. */
  const parts = new WeakMap<object, PartsOfWorker>();
  return {
    name: NAME,
    async configureWorker(theirs) {
      const [{ createWorkerParts }, { guardLog }, { assertOneSdk, assertSameSdk }] =
        await Promise.all([import('./parts.js'), import('./log.js'), import('../temporal/sdk.js')]);
      assertOneSdk();
      if (theirs.workflowsPath !== undefined) assertSameSdk(theirs.workflowsPath);
      await assertEngine(theirs.workflowBundle);
      const keyring = keyringFrom(encryption, options.env ?? process.env);
      guardLog();
      const { activities, ...own } = createWorkerParts(config, options);
      parts.set(activities.loadAgent, { ...own, isEncrypted: keyring !== null });
      return {
        ...theirs,
        ...(await mergeSettings(theirs)),
        activities: mergeActivities(theirs.activities ?? {}, activities),
        ...withCodec(theirs, keyring),
      };
    },
    configureBundler: (theirs) => configureBundler(theirs, neededWorkflows(config)),
    async runWorker(worker, next) {
      const own = parts.get(worker.options.activities.get('loadAgent') ?? worker);
      if (own === undefined) return await next(worker);
      const [{ onShutdown }, { hideTexts }] = await Promise.all([
        import('./parts.js'),
        import('./log.js'),
      ]);
      onShutdown(worker, own.stop);
      own.startRetention(worker);
      const showTexts = own.isEncrypted ? hideTexts() : () => undefined;
      const { namespace, taskQueue } = worker.options;
      // Clients of this process read its deltas directly.
      const leave = pollsHere({ namespace, taskQueue });
      await next(worker).finally(leave).finally(own.close).finally(showTexts);
    },
  };
}

interface PartsOfWorker extends Omit<WorkerParts, 'activities'> {
  readonly isEncrypted: boolean;
}

/** Returns the options of a worker that encrypts, if there are keys. A codec of its own stays. */
function withCodec(
  { interceptors, dataConverter: given }: WorkerOptions,
  keyring: Keyring | null,
): Pick<WorkerOptions, 'interceptors' | 'dataConverter'> {
  if (keyring === null) return { interceptors: withTraces(interceptors) };
  const sealed = { interceptors: withTraces(sealedFailures(interceptors)) };
  if (given?.payloadCodecs !== undefined) return sealed;
  return { ...sealed, dataConverter: { ...given, ...dataConverter(keyring).dataConverter } };
}

/** Throws an `InputError` for a bundle that was made without perdure's workflow code. */
async function assertEngine(bundle: WorkerOptions['workflowBundle']): Promise<void> {
  if (bundle === undefined) return;
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8');
  if (code.includes(ENGINE)) return;
  throw new InputError(
    `plugin ${NAME}: workflowBundle: expected perdure's workflow code, got none; give bundleWorkflowCode the plugin ` +
      "too, and export it from your workflows file: export { agent, probe } from 'perdure/workflow';",
  );
}

/**
 * A string in the interceptors that no bundler changes and that only the plugin adds to a bundle.
 */
const ENGINE = 'has brought this run ahead of its workflow tasks';
const NAME = 'perdure';

/**
 * A worker of the user has the SDK's limit on blocked workflow code, in ms; the SDK's type does not list the
 * option. `UntimedWorker` says what the default of 5 s does to a frozen worker.
 */
const LONG_LIMIT = { isolateExecutionTimeout: 3_600_000 };

/**
 * Returns the default settings, overridden by the worker's own options under any name of the SDK.
 */
async function mergeSettings(given: WorkerOptions): Promise<Partial<WorkerOptions>> {
  const { WORKER_SETTINGS } = await import('./parts.js');
  const other: Readonly<Record<string, unknown>> = {
    workflowTaskPollerBehavior: given.maxConcurrentWorkflowTaskPolls,
    activityTaskPollerBehavior: given.maxConcurrentActivityTaskPolls,
  };
  const theirs = Object.entries(given).filter(([, value]) => value !== undefined);
  const ours = { ...WORKER_SETTINGS, ...LONG_LIMIT };
  const open = Object.entries(ours).filter(([name]) => other[name] === undefined);
  return Object.fromEntries([...open, ...theirs]);
}

function mergeActivities(theirs: object, ours: object): object {
  const clash = Object.keys(ours).find((name) => name in theirs);
  if (clash === undefined) return { ...theirs, ...ours };
  throw new InputError(
    `plugin ${NAME}: activities: expected no activity "${clash}", which perdure adds itself; rename ` +
      'yours, or give the plugin only once, to the worker or to the connection',
  );
}

/** Returns the workflow types that the worker's code must have. */
function neededWorkflows({
  models = {},
  budgets = [],
}: Pick<Config, 'models' | 'budgets'>): readonly string[] {
  const isRated = Object.values(models).some(({ rate }) => rate !== undefined);
  return ['agent', ...(isRated ? ['rate'] : []), ...(budgets.length > 0 ? ['budget'] : [])];
}

function configureBundler(given: BundleOptions, needed: readonly string[]): BundleOptions {
  const {
    payloadConverterPath,
    preloadModules = [],
    workflowInterceptorModules = [],
    logger,
  } = given;
  if (payloadConverterPath !== undefined) {
    logger?.warn(
      `plugin ${NAME}: the worker keeps its own payload converter (${payloadConverterPath}). A payload ` +
        'that it cannot read fails the workflow tasks of a run again and again, instead of the run',
    );
  }
  return {
    ...given,
    payloadConverterPath: payloadConverterPath ?? WORKFLOW_MODULES.payloadConverter(),
    preloadModules: [...preloadModules, WORKFLOW_MODULES.engine()],
    workflowInterceptorModules: [...workflowInterceptorModules, WORKFLOW_MODULES.interceptors()],
    webpackConfigHook: (config) => {
      const hooked = given.webpackConfigHook?.(config) ?? config;
      return {
        ...hooked,
        plugins: [...(hooked.plugins ?? []), requireWorkflows(given.workflowsPath, needed)],
      };
    },
  };
}

type WebpackConfig = Parameters<NonNullable<BundleOptions['webpackConfigHook']>>[0];
type WebpackPlugin = Extract<
  NonNullable<WebpackConfig['plugins']>[number],
  { apply: (compiler: never) => void }
>;

/** Runs after webpack has determined the exports of each module. */
const LAST = 1_000;

/**
 * Fails the bundle of a workflows file that does not export these workflows, since their runs would
 * fail every task indefinitely.
 */
function requireWorkflows(workflowsPath: string, needed: readonly string[]): WebpackPlugin {
  return {
    apply(compiler) {
      compiler.hooks.compilation.tap(NAME, (compilation) => {
        compilation.hooks.finishModules.tapPromise({ name: NAME, stage: LAST }, async (modules) => {
          for (const module of modules) {
            const file: unknown = Reflect.get(module, 'resource');
            if (typeof file !== 'string' || !isWorkflowsFile(file, workflowsPath)) continue;
            // It is null for exports that are known only at runtime.
            const missing = needed.find(
              (name) => compilation.moduleGraph.isExportProvided(module, name) === false,
            );
            if (missing === undefined) continue;
            throw new InputError(
              `plugin ${NAME}: ${file}: expected an export \`${missing}\`, got none; add: export { ${missing} } from 'perdure/workflow';`,
            );
          }
        });
      });
    },
  };
}

/** The path may be a folder, and may omit the extension. */
function isWorkflowsFile(file: string, path: string): boolean {
  return (
    file === path || (file.startsWith(path) && /^(\/index)?\.\w+$/.test(file.slice(path.length)))
  );
}
