import {
  NativeConnection,
  Runtime,
  type WorkerOptions as SdkWorkerOptions,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import { DeploymentError, InputError } from '../core/errors.js';
import { toMs } from '../core/text/text.js';
import { withTraces } from '../telemetry/spans.js';
import { openStores } from '../storage/file-stores.js';
import { ownVersion, perdureHome } from '../storage/files.js';
import { resolveTaskQueue } from '../temporal/task-queue.js';
import { isTestHome, locateTarget } from '../server/locate-target.js';
import { unreachable } from '../temporal/grpc.js';
import { assertOneSdk } from '../temporal/sdk.js';
import { UntimedWorker } from '../temporal/untimed-worker.js';
import { deploymentProblem, versioningOptions, promote, type WorkerBuild } from './deployment.js';
import { createLiveHub, pollsHere } from '../live/hub.js';
import { resolveLiveOptions } from '../live/live-options.js';
import { readLiveHosts } from '../live/live-workers.js';
import type { LiveServer, StartLiveServer } from '../live/live-server.js';
import { containStrayErrors } from '../tools/errors.js';
import { guardLog, hideTexts, installRuntimeOf, prepareTestRuntime, programLogger } from './log.js';
import { WORKER_SETTINGS, createWorkerParts, onShutdown } from './parts.js';
import { assertWorkerOptions, type WorkerOptions } from './options.js';
import { loadWorkflowCode, sealedWorkflowCode } from './bundle.js';
import { keyringFrom } from '../encryption/keyring.js';
import { dataConverter, sealedFailures } from '../encryption/payload-codec.js';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/** A worker that polls. */
export interface RunningWorker {
  readonly taskQueue: string;
  /** The worker's identity in the server's list of pollers. */
  readonly identity: string;
  /** The build that this worker is registered as; null without worker versioning. */
  readonly deployed: WorkerBuild | null;
  /** Where the worker serves live streams; null if it does not. */
  readonly live: { readonly url: string } | null;
  /** Resolves when the worker has shut down; rejects if it failed. */
  readonly stopped: Promise<void>;
  /**
   * Stops polling, waits for activities as long as `shutdownGrace` allows, and closes the
   * connection.
   */
  shutdown(): Promise<void>;
}

/**
 * Starts a worker. Resolves when it polls or, with a deployment, when its build is the current one.
 * Rejects with an `InputError` or a `LiveOptionsError` if an option is invalid, and with a
 * `NoServerError` if the server does not answer: the program decides whether to try again. The
 * command `perdure worker` waits for the server.
 */
export async function createWorker(options: WorkerOptions): Promise<RunningWorker> {
  return await startWorker(options, { erases: true });
}

/** Like `createWorker`. `erases`: whether the worker erases ended runs by the retention of its agents. */
export async function startWorker(
  options: WorkerOptions,
  how: { readonly erases: boolean },
): Promise<RunningWorker> {
  assertWorkerOptions(options);
  const { worker, connection } = await start(options, how);
  const { deployed, taskQueue, identity, stopped } = worker;
  if (deployed?.isCurrent !== true) return worker;
  const stoppedEarly = stopped.then(() => {
    throw new DeploymentError('the worker shut down before its build became the current one');
  });
  try {
    await Promise.race([promote(connection, deployed, { taskQueue, identity }), stoppedEarly]);
    return worker;
  } catch (error) {
    // Without promotion, the worker would get no work.
    await worker.shutdown().catch(() => undefined);
    throw error;
  }
}

async function start(
  { home: givenHome, env: givenEnv = process.env, ...rest }: WorkerOptions,
  { erases }: { readonly erases: boolean },
): Promise<{ worker: RunningWorker; connection: NativeConnection }> {
  const env = { ...givenEnv, ...(givenHome !== undefined && { PERDURE_HOME: givenHome }) };
  const options = { ...rest, env };
  assertOneSdk();
  if (options.runtime !== undefined) installRuntimeOf(options.runtime);
  const home = perdureHome(env);
  prepareLog(home);
  const { config } = options;
  const target = await locateTarget(
    {
      address: options.address ?? config.address,
      namespace: options.namespace ?? config.namespace,
    },
    { env, home },
  );
  const { address, namespace } = target;
  const taskQueue = options.taskQueue ?? resolveTaskQueue(config, env);
  const { converter, interceptors, loadCode, hide, hashing } = encryptionOf(options);
  const deployed = await toWorkerBuild(options, { address, namespace, loadCode });
  const { live = false } = options;
  const liveOptions = live === false ? null : resolveLiveOptions(live, env);
  const hub = createLiveHub();
  const parts = createWorkerParts(config, { ...options, ...(liveOptions && { hub }) });
  const connection = await NativeConnection.connect(target.options).catch((error: unknown) => {
    throw unreachable(address, error);
  });
  let liveServer: LiveServer | null = null;
  const over = both(options.containStrayErrors === true ? contain() : doNothing, hide());
  try {
    const hosts = readLiveHosts(env);
    const archive = options.archive ?? openStores(home, env).archive;
    const place = { hub, target, taskQueue, home, archive, hosts, converter, hashing };
    liveServer = liveOptions && (await openLiveServer(liveOptions, place));
    const worker = await UntimedWorker.create({
      connection,
      namespace,
      taskQueue,
      ...(await codeOptions(deployed, options.workflows === false ? null : await loadCode())),
      activities: parts.activities,
      ...WORKER_SETTINGS,
      interceptors,
      ...converter,
      ...(options.activities === false && { enableNonLocalActivities: false }),
      ...(options.shutdownGrace !== undefined && {
        shutdownGraceTime: toMs(options.shutdownGrace),
      }),
      ...(options.maxCachedWorkflows !== undefined && {
        maxCachedWorkflows: options.maxCachedWorkflows,
      }),
    });
    onShutdown(worker, parts.stop);
    if (erases && options.activities !== false) parts.startRetention(worker);
    const leave = pollsHere({ namespace, taskQueue });
    const ended = worker.run().finally(async () => {
      leave();
      await parts.close();
      await liveServer?.close();
      await connection.close();
    });
    const stopped = ended.finally(over);
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
    over();
    await liveServer?.close();
    await connection.close();
    throw error;
  }
}

function prepareLog(home: string): void {
  // A global setup may have started the server, in another process.
  if (isTestHome(home)) prepareTestRuntime();
  guardLog(programLogger);
}

/** Returns what a worker with keys does differently: its converter, and how its workflow code records failures. */
function encryptionOf({ config, env, workflowBundle, interceptors: given }: WorkerOptions) {
  const keyring = keyringFrom(config.encryption, env ?? process.env);
  const hide = keyring === null ? () => doNothing : hideTexts;
  const loadCode = async (): Promise<WorkflowBundleOption> => {
    const bundle = workflowBundle ?? (await loadWorkflowCode());
    return keyring === null ? bundle : await sealedWorkflowCode(bundle);
  };
  const interceptors = withTraces(keyring === null ? given : sealedFailures(given));
  const hashing = keyring?.ids ?? null;
  return { converter: dataConverter(keyring), interceptors, loadCode, hide, hashing };
}

const doNothing = (): void => undefined;

function both(one: () => void, other: () => void): () => void {
  return () => {
    one();
    other();
  };
}

/** Returns a function that ends the containment. */
function contain(): () => void {
  return containStrayErrors((message) => Runtime.instance().logger.error(message));
}

/** Loads the modules of the live server, which only a worker with live streams needs. */
async function openLiveServer(...given: Parameters<StartLiveServer>): Promise<LiveServer> {
  const { startLiveServer } = await import('../live/live-server.js');
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
    // A worker without workflow code cannot run what would start on its build.
    isCurrent: deployment.promote ?? workflows,
  };
}

/**
 * Returns the code of workflows, and what the worker is called in four events of each step: its build,
 * or the version of perdure with that code. The SDK's own text is 60 bytes longer, and does not name
 * perdure.
 */
async function codeOptions(
  deployed: WorkerBuild | null,
  bundle: WorkflowBundleOption | null,
): Promise<Pick<SdkWorkerOptions, 'workflowBundle' | 'buildId' | 'workerDeploymentOptions'>> {
  const code = bundle === null ? {} : { workflowBundle: bundle };
  if (deployed !== null) return { ...code, workerDeploymentOptions: versioningOptions(deployed) };
  const digest = bundle === null ? '' : `+${await computeBuildId(bundle)}`;
  return { ...code, buildId: `perdure@${ownVersion()}${digest}` };
}

/** Hex digits of a build id: enough to distinguish builds, and short enough to read. */
const DIGITS = 12;

/**
 * Returns a build id derived from the workflow code: the same in every folder and on every machine.
 * The source map does not count, since it contains the folder in which the code was bundled.
 */
export async function computeBuildId(bundle: WorkflowBundleOption): Promise<string> {
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8');
  const plain = code.replaceAll(/^\/\/# sourceMappingURL=.*$/gm, '');
  return createHash('sha256').update(plain).digest('hex').slice(0, DIGITS);
}
