import { setTimeout as pause } from 'node:timers/promises';
import { isGrpcServiceError, type ConnectionLike } from '@temporalio/client';
import type { WorkerDeploymentOptions } from '@temporalio/worker';
import { DeploymentError } from '../core/errors.js';

/** Worker versioning, opt-in: a run stays on the build on which it began, up to its next segment. */
export interface DeploymentOptions {
  /** What the builds of one service have in common. Letters, digits, `-` and `_` are always right. */
  readonly name: string;
  /** Default: by the content of the workflow code. For tests, and pipelines with names of their own. */
  readonly buildId?: string;
  /**
   * Makes this build the current one as soon as it polls: new runs begin on it. Default true for
   * workers that run workflows; with false nothing new reaches this build until somebody does it.
   */
  readonly promote?: boolean;
}

/** One build of a deployment, as the server knows it. */
export interface DeploymentVersion {
  /** Of the server. */
  readonly address: string;
  readonly namespace: string;
  readonly deploymentName: string;
  readonly buildId: string;
}

/** The build that a worker is registered as. */
export interface WorkerBuild extends DeploymentVersion {
  /** Whether this worker has made it the one on which new runs begin. */
  readonly isCurrent: boolean;
}

interface Promotion {
  /** One that the build polls. */
  readonly taskQueue: string;
  /** Of who does it. */
  readonly identity: string;
  readonly withinMs?: number;
}

/** As long as a worker of another queue of the same deployment may take to come. */
const PROMOTED_WITHIN_MS = 30_000;
const AGAIN_MS = 100;
const LONGEST_NAME = 200;
const LONGEST_BUILD_ID = 128;

/** What is wrong with the options, with the cure; null when nothing is. */
export function deploymentFault({ name, buildId }: DeploymentOptions): string | null {
  if (name === '' || name.length > LONGEST_NAME) {
    return `deployment name of ${name.length} characters: give one of 1 to ${LONGEST_NAME}`;
  }
  // The server joins name and build id by these, and keeps the underscores for itself.
  if (/[.:\s]|\p{Cc}/u.test(name) || name.startsWith('__')) {
    return `deployment name "${name}": leave out dots, colons and spaces, and do not begin with __; for example ${suggested(name)}`;
  }
  if (buildId === undefined) return null;
  if (!/^[\w.+@/-]+$/.test(buildId) || buildId.length > LONGEST_BUILD_ID) {
    return `build id "${buildId}": give 1 to ${LONGEST_BUILD_ID} letters, digits or any of . + @ / _ -`;
  }
  return null;
}

/** How a worker says which build it is, and that a run keeps to the build on which it began. */
export function pinnedTo({ deploymentName, buildId }: DeploymentVersion): WorkerDeploymentOptions {
  return {
    version: { deploymentName, buildId },
    useWorkerVersioning: true,
    defaultVersioningBehavior: 'PINNED',
  };
}

/** Makes a build the current one, as soon as the server has seen who polls for it on this queue. */
export async function promote(
  connection: ConnectionLike,
  version: DeploymentVersion,
  { taskQueue, identity, withinMs = PROMOTED_WITHIN_MS }: Promotion,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const notYet = await connection
      .withDeadline(deadline, () => attempt(connection, version, { taskQueue, identity }))
      .catch((error: unknown) => explained(error, version));
    if (notYet === null) return;
    if (Date.now() + AGAIN_MS > deadline) throw tooLate(version, { notYet, withinMs });
    await pause(AGAIN_MS);
  }
}

/** The line that makes a build the current one by hand. */
export function promotionCommand(version: DeploymentVersion): string {
  const { address, namespace, deploymentName, buildId } = version;
  return (
    `temporal worker deployment set-current-version --address ${address} --namespace ${namespace} ` +
    `--deployment-name '${deploymentName}' --build-id '${buildId}' --yes`
  );
}

/** Null when it is done; else why it cannot be done yet. */
async function attempt(
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

/** Status codes of gRPC. */
const CODE = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** What passes with time: the build is not listed yet, its other queues are not, others change it too. */
const PASSING: readonly number[] = [
  CODE.deadlineExceeded,
  CODE.notFound,
  CODE.resourceExhausted,
  CODE.failedPrecondition,
  CODE.aborted,
  CODE.unavailable,
];

/** Why it cannot be done yet; throws what no time will mend. */
function explained(error: unknown, version: DeploymentVersion): string {
  if (!isGrpcServiceError(error)) throw error;
  const { details } = error;
  const code: number = error.code;
  if (PASSING.includes(code)) return details;
  const what = `${titleOf(version)} cannot be made current: `;
  if (code === CODE.unimplemented) {
    const text = `${what}this Temporal server is too old for worker deployments (${details}); update it to 1.28 or later, or start the worker without a deployment`;
    throw new DeploymentError(text, { cause: error });
  }
  if (code === CODE.permissionDenied || code === CODE.unauthenticated) {
    const text = `${what}${details}; start the worker with --no-promote (promote: false), and let somebody who may do it run: ${promotionCommand(version)}`;
    throw new DeploymentError(text, { cause: error });
  }
  throw new DeploymentError(`${what}${details}`, { cause: error });
}

function tooLate(
  version: DeploymentVersion,
  { notYet, withinMs }: { readonly notYet: string; readonly withinMs: number },
): DeploymentError {
  return new DeploymentError(
    `${titleOf(version)} could not be made current within ${withinMs / 1_000} s: ${notYet}. ` +
      'Where the current build also serves task queues that this one no longer has, start the worker ' +
      `with --no-promote (promote: false) and run: ${promotionCommand(version)} --ignore-missing-task-queues`,
  );
}

export function titleOf({
  deploymentName,
  buildId,
}: Pick<DeploymentVersion, 'deploymentName' | 'buildId'>): string {
  return `deployment ${deploymentName}, build ${buildId}`;
}

function suggested(name: string): string {
  const letters = name.replaceAll(/[.:\s]|\p{Cc}/gu, '-').replace(/^_+/, '');
  return letters.replaceAll('-', '') === '' ? 'agents' : letters;
}
