import {
  NativeConnection,
  Runtime,
  Worker,
  type RuntimeOptions,
  type WorkerInterceptors,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { Config } from './config.js';
import { DeploymentError, InputError } from './core/errors.js';
import { withTraces } from './telemetry/activity-traces.js';
import { perdureHome } from './storage/home.js';
import { resolveTaskQueue } from './temporal/task-queue.js';
import { locateTarget, unreachable } from './server/locate-target.js';
import type { ConnectionSettings } from './temporal/connection.js';
import { assertOneSdk } from './temporal/sdk.js';
import {
  deploymentProblem,
  versioningOptions,
  promote,
  type WorkerBuild,
  type DeploymentOptions,
} from './worker/deployment.js';
import { createLiveHub } from './live/hub.js';
import { resolveLiveOptions, type LiveOptions } from './live/live-options.js';
import { readLiveHosts } from './live/live-hosts.js';
import type { LiveServer, StartLiveServer } from './live/live-server.js';
import { containStrayErrors } from './tools/stray-errors.js';
import {
  WORKER_SETTINGS,
  onShutdown,
  createWorkerParts,
  type SharedWorkerOptions,
} from './worker/parts.js';
import { installRuntimeOf } from './worker/runtime.js';
import { loadWorkflowCode } from './worker/bundle.js';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/** Options of `createWorker`. */
export interface WorkerOptions extends ConnectionSettings, SharedWorkerOptions {
  readonly config: Config;
  /** The folder for blobs, archive, and live hosts; default: PERDURE_HOME. */
  readonly home?: string;
  /** Default: that of the configuration, else PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /** Whether it runs workflow code; false: only activities, for example on a machine for heavy tools. Default true. */
  readonly workflows?: boolean;
  /** Whether it executes activities; false: runs take messages and decisions, and their work waits. Default true. */
  readonly activities?: boolean;
  /**
   * Interceptors of activities, and of the client that activities have, such as Temporal's for
   * OpenTelemetry. Those of workflows are a part of a bundle of your own.
   */
  readonly interceptors?: Pick<WorkerInterceptors, 'activity' | 'client'>;
  /**
   * Options of the SDK's runtime: its metrics (perdure's are among them), its logger, which gets no
   * secrets, and its telemetry. A process has one runtime: starting the worker rejects if there is one.
   */
  readonly runtime?: RuntimeOptions;
  /** A bundle of workflow code; default: perdure's own. */
  readonly workflowBundle?: WorkflowBundleOption;
  /** Milliseconds that activities in flight may take to end when the worker shuts down; default 5,000. */
  readonly shutdownGraceMs?: number;
  /** How many idle runs stay in memory; default: by the size of the heap. */
  readonly maxCachedWorkflows?: number;
  /** Worker versioning: runs stay on the build on which they began. Default: no versioning. */
  readonly deployment?: DeploymentOptions;
  /**
   * Serves replies in progress to `client.stream` and over HTTP. Default false; commands that host a
   * worker turn it on.
   */
  readonly live?: LiveOptions | false;
  /**
   * Whether an error that a tool raises outside its promise (in a floating promise, a timer, or an event
   * emitter) fails that tool's call and is logged, instead of ending the process and the calls of other
   * runs with it. The outcome of a `once` call is then unknown. This also covers `retrieve`, `decide`,
   * `verify`, models, and output functions. An error that belongs to none of them still ends the process.
   * Adds listeners for `unhandledRejection` and `uncaughtException`. Default false; commands that host a
   * worker turn it on.
   */
  readonly containStrayErrors?: boolean;
}

/** A worker that polls. */
export interface RunningWorker {
  readonly taskQueue: string;
  /** How the server lists this worker among the pollers. */
  readonly identity: string;
  /** The build that this worker is registered as; null without worker versioning. */
  readonly deployed: WorkerBuild | null;
  /** Where it serves live streams; null if it does not. */
  readonly live: { readonly url: string } | null;
  /** Resolves when the worker has shut down; rejects if it failed. */
  readonly stopped: Promise<void>;
  /** Stops polling, waits for activities as long as `shutdownGraceMs` allows, and closes the connection. */
  shutdown(): Promise<void>;
}

/**
 * Starts a worker and resolves when it polls; with a deployment, when its build is the current one.
 * Rejects if the server does not answer or an option is invalid.
 */
export async function createWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { worker, connection } = await start(options);
  const { deployed, taskQueue, identity, stopped } = worker;
  if (deployed?.isCurrent !== true) return worker;
  const stoppedEarly = stopped.then(() => {
    throw new DeploymentError('the worker shut down before its build became the current one');
  });
  try {
    await Promise.race([promote(connection, deployed, { taskQueue, identity }), stoppedEarly]);
    return worker;
  } catch (error) {
    // Without promotion the worker would get no work.
    await worker.shutdown().catch(() => undefined);
    throw error;
  }
}

async function start({
  home: givenHome,
  env: givenEnv = process.env,
  ...rest
}: WorkerOptions): Promise<{ worker: RunningWorker; connection: NativeConnection }> {
  const env = { ...givenEnv, ...(givenHome !== undefined && { PERDURE_HOME: givenHome }) };
  const options = { ...rest, env };
  assertOneSdk();
  if (options.runtime !== undefined) installRuntimeOf(options.runtime);
  const { config } = options;
  const home = perdureHome(env);
  const target = await locateTarget(
    {
      address: options.address ?? config.address,
      namespace: options.namespace ?? config.namespace,
    },
    { env, home },
  );
  const { address, namespace } = target;
  const taskQueue = options.taskQueue ?? resolveTaskQueue(config, env);
  const loadCode = async () => options.workflowBundle ?? (await loadWorkflowCode());
  const deployed = await toWorkerBuild(options, { address, namespace, loadCode });
  const { live = false } = options;
  const liveOptions = live === false ? null : resolveLiveOptions(live, env);
  const hub = createLiveHub();
  const parts = createWorkerParts(config, { ...options, ...(liveOptions && { hub }) });
  const connection = await NativeConnection.connect(target.options).catch((error: unknown) => {
    throw unreachable(address, error);
  });
  let liveServer: LiveServer | null = null;
  const release = options.containStrayErrors === true ? contain() : doNothing;
  try {
    const hosts = readLiveHosts(env);
    liveServer =
      liveOptions && (await openLiveServer(liveOptions, { hub, target, taskQueue, home, hosts }));
    const worker = await Worker.create({
      connection,
      namespace,
      taskQueue,
      ...(options.workflows !== false && { workflowBundle: await loadCode() }),
      activities: parts.activities,
      ...WORKER_SETTINGS,
      interceptors: withTraces(options.interceptors),
      ...(options.activities === false && { enableNonLocalActivities: false }),
      ...(options.shutdownGraceMs !== undefined && { shutdownGraceTime: options.shutdownGraceMs }),
      ...(options.maxCachedWorkflows !== undefined && {
        maxCachedWorkflows: options.maxCachedWorkflows,
      }),
      ...(deployed && { workerDeploymentOptions: versioningOptions(deployed) }),
    });
    onShutdown(worker, parts.stop);
    const stopped = worker.run().finally(async () => {
      await parts.close();
      await liveServer?.close();
      await connection.close();
      release();
    });
    stopped.catch(() => undefined);
    const shutdown = async (): Promise<void> => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await stopped;
    };
    const { identity } = worker.options;
    const served = liveServer && { url: liveServer.url };
    const running = { taskQueue, identity, deployed, live: served, stopped, shutdown };
    return { worker: running, connection };
  } catch (error) {
    release();
    await liveServer?.close();
    await connection.close();
    throw error;
  }
}

const doNothing = (): void => undefined;

/** Returns a function that ends the containment. */
function contain(): () => void {
  return containStrayErrors((message) => Runtime.instance().logger.error(message));
}

/** Loads the modules of the live server, which a worker without live streams does not need. */
async function openLiveServer(...given: Parameters<StartLiveServer>): Promise<LiveServer> {
  const { startLiveServer } = await import('./live/live-server.js');
  return await startLiveServer(...given);
}

interface BuildContext extends Pick<WorkerBuild, 'address' | 'namespace'> {
  readonly loadCode: () => Promise<WorkflowBundleOption>;
}

/** Returns the build to register as; null without worker versioning. */
async function toWorkerBuild(
  { deployment, workflows = true }: WorkerOptions,
  { loadCode, ...server }: BuildContext,
): Promise<WorkerBuild | null> {
  if (deployment === undefined) return null;
  const problem = deploymentProblem(deployment);
  if (problem !== null) throw new InputError(problem);
  return {
    ...server,
    deploymentName: deployment.name,
    buildId: deployment.buildId ?? (await computeBuildId(await loadCode())),
    // A worker without workflow code cannot run what would begin on its build.
    isCurrent: deployment.promote ?? workflows,
  };
}

/** Hex digits of a build id: enough to distinguish builds, and short enough to read. */
const DIGITS = 12;

/**
 * Returns a build id by the content of workflow code: the same in every folder and on every machine. The
 * source map does not count, since it contains the folder in which the code was bundled.
 */
export async function computeBuildId(bundle: WorkflowBundleOption): Promise<string> {
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8');
  const plain = code.replaceAll(/^\/\/# sourceMappingURL=.*$/gm, '');
  return createHash('sha256').update(plain).digest('hex').slice(0, DIGITS);
}
