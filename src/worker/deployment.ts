import { formatDuration, shellWord } from '../core/text/text.js';
import { setTimeout as pause } from 'node:timers/promises';
import { isGrpcServiceError, type ConnectionLike } from '@temporalio/client';
import { GRPC } from '../temporal/grpc.js';
import type { WorkerDeploymentOptions } from '@temporalio/worker';
import { DeploymentError } from '../core/errors.js';

/**
 * Options of worker versioning: a run stays on the build on which it started, until its next
 * segment.
 */
export interface DeploymentOptions {
  /**
   * The deployment that the builds of one service share: 1 to 200 letters, digits, `-`, and `_`.
   */
  readonly name: string;
  /**
   * Default: derived from the content of the workflow code. Set it in pipelines that name builds
   * themselves.
   */
  readonly buildId?: string;
  /**
   * Whether this build becomes the current one as soon as it polls, so that new runs start on it.
   * Default true for workers that run workflows. With false, it gets no new runs until it is
   * promoted.
   */
  readonly promote?: boolean;
}

/** One build of a deployment, as the server knows it. */
export interface DeploymentVersion {
  /** The address of the server. */
  readonly address: string;
  readonly namespace: string;
  readonly deploymentName: string;
  readonly buildId: string;
}

/** The build that a worker is registered as. */
export interface WorkerBuild extends DeploymentVersion {
  /** Whether this worker makes it the current build, on which new runs start. */
  readonly isCurrent: boolean;
}

interface Promotion {
  /** A task queue that the build polls. */
  readonly taskQueue: string;
  /** The identity of the worker that promotes it. */
  readonly identity: string;
  readonly withinMs?: number;
}

/** The time within which a worker for another task queue of the same deployment should start. */
const PROMOTED_WITHIN_MS = 30_000;
const AGAIN_MS = 100;
const MAX_NAME_CHARACTERS = 200;
const MAX_BUILD_ID_CHARACTERS = 128;

/** Returns what is wrong with the options, and the fix; null if they are valid. */
export function deploymentProblem({ name, buildId }: DeploymentOptions): string | null {
  if (name === '' || name.length > MAX_NAME_CHARACTERS) {
    return `deployment.name: expected 1 to ${MAX_NAME_CHARACTERS} characters, got ${name.length}`;
  }
  // The server joins name and build id with these characters, and reserves the underscores.
  if (/[.:\s]|\p{Cc}/u.test(name) || name.startsWith('__')) {
    return `deployment.name: expected no dots, colons, or spaces, and no __ at the start; got "${name}"; for example ${suggestName(name)}`;
  }
  if (buildId === undefined) return null;
  if (!/^[\w.+@/-]+$/.test(buildId) || buildId.length > MAX_BUILD_ID_CHARACTERS) {
    return `deployment.buildId: expected 1 to ${MAX_BUILD_ID_CHARACTERS} letters, digits, or . + @ / _ -; got "${buildId}"`;
  }
  return null;
}

/**
 * Returns the SDK's options for a worker of a build: runs stay on the build on which they started.
 */
export function versioningOptions({
  deploymentName,
  buildId,
}: DeploymentVersion): WorkerDeploymentOptions {
  return {
    version: { deploymentName, buildId },
    useWorkerVersioning: true,
    defaultVersioningBehavior: 'PINNED',
  };
}

/**
 * Makes a build the current one as soon as the server has seen the build poll this task queue.
 * Rejects with a `DeploymentError`.
 */
export async function promote(
  connection: ConnectionLike,
  version: DeploymentVersion,
  { taskQueue, identity, withinMs = PROMOTED_WITHIN_MS }: Promotion,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const notYet = await connection
      .withDeadline(Date.now() + deadline - performance.now(), () =>
        tryPromote(connection, version, { taskQueue, identity }),
      )
      .catch((error: unknown) => explain(error, version));
    if (notYet === null) return;
    if (performance.now() + AGAIN_MS > deadline) throw tooLate(version, { notYet, withinMs });
    await pause(AGAIN_MS);
  }
}

/** Returns the command line that makes a build the current one. */
export function promotionCommand(version: DeploymentVersion): string {
  const { address, namespace, deploymentName, buildId } = version;
  return (
    `temporal worker deployment set-current-version --address ${shellWord(address)} ` +
    `--namespace ${shellWord(namespace)} --deployment-name ${shellWord(deploymentName)} ` +
    `--build-id ${shellWord(buildId)} --yes`
  );
}

/** Makes one attempt. Returns null if it succeeded, else why it is not possible yet. */
async function tryPromote(
  { workflowService }: ConnectionLike,
  { namespace, deploymentName, buildId }: DeploymentVersion,
  { taskQueue, identity }: Promotion,
): Promise<string | null> {
  const { versionTaskQueues } = await workflowService.describeWorkerDeploymentVersion({
    namespace,
    deploymentVersion: { deploymentName, buildId },
  });
  const isPolled = versionTaskQueues?.some(({ name }) => name === taskQueue);
  if (!isPolled) return `the server has not seen it poll task queue "${taskQueue}" yet`;
  await workflowService.setWorkerDeploymentCurrentVersion({
    namespace,
    deploymentName,
    buildId,
    identity,
  });
  return null;
}

/**
 * Transient failures: the build or one of its queues is not listed yet, or there are concurrent
 * changes of the deployment.
 */
const TRANSIENT: readonly number[] = [
  GRPC.deadlineExceeded,
  GRPC.notFound,
  GRPC.resourceExhausted,
  GRPC.failedPrecondition,
  GRPC.aborted,
  GRPC.unavailable,
];

/**
 * Returns why promotion is not possible yet. Throws a `DeploymentError` for a failure that waiting
 * cannot fix.
 */
function explain(error: unknown, version: DeploymentVersion): string {
  if (!isGrpcServiceError(error)) throw error;
  const { details } = error;
  const code: number = error.code;
  if (TRANSIENT.includes(code)) return details;
  const prefix = `${deploymentTitle(version)} cannot be made current: `;
  if (code === GRPC.unimplemented) {
    const text = `${prefix}this Temporal server is too old for worker deployments (${details}); update it to 1.28 or later, or start the worker without a deployment`;
    throw new DeploymentError(text, { cause: error });
  }
  if (code === GRPC.permissionDenied || code === GRPC.unauthenticated) {
    const text = `${prefix}${details}; start the worker with --no-promote (promote: false), and let an operator with the permission run: ${promotionCommand(version)}`;
    throw new DeploymentError(text, { cause: error });
  }
  throw new DeploymentError(`${prefix}${details}`, { cause: error });
}

function tooLate(
  version: DeploymentVersion,
  { notYet, withinMs }: { readonly notYet: string; readonly withinMs: number },
): DeploymentError {
  return new DeploymentError(
    `${deploymentTitle(version)} could not be made current within ${formatDuration(withinMs, { as: 'exact' })}: ${notYet}. ` +
      'If the current build also serves task queues that this build no longer has, start the worker ' +
      `with --no-promote (promote: false) and run: ${promotionCommand(version)} --ignore-missing-task-queues`,
  );
}

export function deploymentTitle({
  deploymentName,
  buildId,
}: Pick<DeploymentVersion, 'deploymentName' | 'buildId'>): string {
  return `deployment ${deploymentName}, build ${buildId}`;
}

function suggestName(name: string): string {
  const letters = name.replaceAll(/[.:\s]|\p{Cc}/gu, '-').replace(/^_+/, '');
  return letters.replaceAll('-', '') === '' ? 'agents' : letters;
}
