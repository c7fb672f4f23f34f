import { NativeConnection, Runtime, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { Config } from '../config.js';
import { homeOf } from '../storage/home.js';
import { resolveTaskQueue } from '../temporal/task-queue.js';
import { locateTarget, unreachable } from '../server/locate-target.js';
import type { ConnectionSettings } from '../temporal/connection.js';
import { assertOneSdk } from '../temporal/sdk.js';
import {
  deploymentFault,
  pinnedTo,
  promote,
  type WorkerBuild,
  type DeploymentOptions,
} from './deployment.js';
import { createLiveHub } from '../live/hub.js';
import { resolveLiveOptions, type LiveOptions } from '../live/live-options.js';
import { readLiveHosts } from '../live/live-hosts.js';
import type { LiveServer, StartLiveServer } from '../live/live-server.js';
import { containStrayErrors } from '../tools/stray-errors.js';
import { WORKER_SETTINGS, whenShutDown, workerParts, type SharedWorkerOptions } from './parts.js';
import { workflowCode } from './bundle.js';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

export interface WorkerOptions extends ConnectionSettings, SharedWorkerOptions {
  readonly config: Config;
  /** Default: the config's, else PERDURE_TASK_QUEUE, else `perdure`. */
  readonly taskQueue?: string;
  /** Runs workflow code; false: only activities, e.g. on a machine for heavy tools. Default true. */
  readonly workflows?: boolean;
  /** Workflow code made before; default: perdure's own, prebuilt. */
  readonly workflowBundle?: WorkflowBundleOption;
  /** Milliseconds that activities in flight get to end when the worker shuts down; default 5,000. */
  readonly shutdownGraceMs?: number;
  /** Idle runs kept in memory; default by the size of the heap. */
  readonly maxCachedWorkflows?: number;
  /** Worker versioning: runs stay on the build on which they began. Default: none. */
  readonly deployment?: DeploymentOptions;
  /**
   * Lets others read what models say while they say it, by `client.stream` and over HTTP. Default
   * false; the commands do it.
   */
  readonly live?: LiveOptions | false;
  /**
   * Keeps an error that a tool raises outside its promise (a promise that nobody awaits, a timer, an
   * event emitter) from ending the process, and with it the calls of other runs: it fails the call
   * that it belongs to, under the tool's name, and is logged. A `once` call's outcome is unknown then.
   * The same holds for `retrieve`, `decide`, `verify`, models, and output functions. An error that
   * belongs to none of them ends the process as ever. Adds listeners of `unhandledRejection` and
   * `uncaughtException` to the process. Default false; the commands do it.
   */
  readonly containStrayErrors?: boolean;
}

export interface RunningWorker {
  readonly taskQueue: string;
  readonly identity: string;
  /** Null without worker versioning. */
  readonly deployed: WorkerBuild | null;
  /** Where it lets others read along; null where it does not. */
  readonly live: { readonly url: string } | null;
  /** Resolves when the worker has stopped; rejects when it died. */
  readonly stopped: Promise<void>;
  /** Stops polling, lets activities end within the grace, closes the connection. */
  shutdown(): Promise<void>;
}

/**
 * Starts a worker and resolves when it polls; with a deployment, when its build is the current one.
 * Rejects when the server or the configuration is at fault.
 */
export async function createWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { worker, connection } = await start(options);
  const { deployed, taskQueue, identity, stopped } = worker;
  if (deployed?.isCurrent !== true) return worker;
  const early = stopped.then(() => {
    throw new Error('the worker was stopped before its build could be made the current one');
  });
  try {
    await Promise.race([promote(connection, deployed, { taskQueue, identity }), early]);
    return worker;
  } catch (error) {
    // It would wait for work that never comes.
    await worker.shutdown().catch(() => undefined);
    throw error;
  }
}

async function start(
  options: WorkerOptions,
): Promise<{ worker: RunningWorker; connection: NativeConnection }> {
  assertOneSdk();
  const { config, env = process.env } = options;
  const home = homeOf(env);
  const target = await locateTarget(
    {
      address: options.address ?? config.address,
      namespace: options.namespace ?? config.namespace,
    },
    { env, home },
  );
  const { address, namespace } = target;
  const taskQueue = options.taskQueue ?? resolveTaskQueue(config, env);
  const code = async () => options.workflowBundle ?? (await workflowCode());
  const deployed = await deployedAs(options, { address, namespace, code });
  const { live: wish = false } = options;
  const place = wish === false ? null : resolveLiveOptions(wish, env);
  const hub = createLiveHub();
  const parts = workerParts(config, { ...options, ...(place && { hub }) });
  const connection = await NativeConnection.connect(target.options).catch((error: unknown) => {
    throw unreachable(address, error);
  });
  let plane: LiveServer | null = null;
  const release = options.containStrayErrors === true ? contain() : () => undefined;
  try {
    const hosts = readLiveHosts(env);
    plane = place && (await openPlane(place, { hub, target, taskQueue, home, hosts }));
    const worker = await Worker.create({
      connection,
      namespace,
      taskQueue,
      ...(options.workflows !== false && { workflowBundle: await code() }),
      activities: parts.activities,
      ...WORKER_SETTINGS,
      ...(options.shutdownGraceMs !== undefined && { shutdownGraceTime: options.shutdownGraceMs }),
      ...(options.maxCachedWorkflows !== undefined && {
        maxCachedWorkflows: options.maxCachedWorkflows,
      }),
      ...(deployed && { workerDeploymentOptions: pinnedTo(deployed) }),
    });
    whenShutDown(worker, parts.stop);
    const stopped = worker.run().finally(async () => {
      await parts.close();
      await plane?.close();
      await connection.close();
      release();
    });
    stopped.catch(() => undefined);
    const shutdown = async (): Promise<void> => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await stopped;
    };
    const { identity } = worker.options;
    const live = plane && { url: plane.url };
    return { worker: { taskQueue, identity, deployed, live, stopped, shutdown }, connection };
  } catch (error) {
    release();
    await plane?.close();
    await connection.close();
    throw error;
  }
}

function contain(): () => void {
  return containStrayErrors((message) => Runtime.instance().logger.error(message));
}

/** Where nobody is to read along, nothing of it is loaded. */
async function openPlane(...given: Parameters<StartLiveServer>): Promise<LiveServer> {
  const { startLiveServer } = await import('../live/live-server.js');
  return await startLiveServer(...given);
}

interface Surroundings extends Pick<WorkerBuild, 'address' | 'namespace'> {
  readonly code: () => Promise<WorkflowBundleOption>;
}

/** Null without worker versioning. */
async function deployedAs(
  { deployment, workflows = true }: WorkerOptions,
  { code, ...server }: Surroundings,
): Promise<WorkerBuild | null> {
  if (deployment === undefined) return null;
  const fault = deploymentFault(deployment);
  if (fault !== null) throw new Error(fault);
  return {
    ...server,
    deploymentName: deployment.name,
    buildId: deployment.buildId ?? (await buildIdOf(await code())),
    // Runs would begin on a build that nobody has who could run them.
    isCurrent: deployment.promote ?? workflows,
  };
}

/** Enough to tell builds apart, short enough to be read aloud. */
const DIGITS = 12;

/**
 * Names workflow code by its content: the same code gets the same name in every folder and on every
 * machine. The source map is left out, as it names the folder in which the code was bundled.
 */
export async function buildIdOf(bundle: WorkflowBundleOption): Promise<string> {
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8');
  const plain = code.replaceAll(/^\/\/# sourceMappingURL=.*$/gm, '');
  return createHash('sha256').update(plain).digest('hex').slice(0, DIGITS);
}
