import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import {
  SearchAttributeType,
  TypedSearchAttributes,
  defineSearchAttributeKey,
} from '@temporalio/common';
import { isObject } from '../core/text/json.js';
import { GRPC, grpcCode, hasExited } from './grpc.js';
import { optionalTsToMs } from './sdk-internals.js';

/** A worker that polled a task queue recently. It may have ended since. */
export interface Poller {
  /** `pid@host`, unless the worker has a name of its own. */
  readonly identity: string;
  /**
   * Unix time in ms by the clock of this machine, as far as its difference from the server's clock
   * is known.
   */
  readonly lastPollAt: number;
  /** Whether its process on this machine has ended. The server lists it for a few more minutes. */
  readonly gone: boolean;
  /** The build that it reports; null without worker versioning. */
  readonly build: Build | null;
}

/** A build of a deployment, by which the server routes work. */
export interface Build {
  readonly deploymentName: string;
  readonly buildId: string;
}

/** A task queue as the server knows it. */
export interface QueueState {
  readonly pollers: readonly Poller[];
  /** The build that gets new runs; null if unversioned workers get them. */
  readonly current: Build | null;
}

/**
 * Returns the only build that can continue a run, from search attributes that the server sets in every
 * namespace; null if the run is not pinned.
 */
export function pinnedBuild(
  attributes: Readonly<Record<string, readonly unknown[] | undefined>>,
): Build | null {
  const [behavior] = attributes['TemporalWorkflowVersioningBehavior'] ?? [];
  const [version] = attributes['TemporalWorkerDeploymentVersion'] ?? [];
  if (behavior !== 'Pinned' || typeof version !== 'string') return null;
  // The name of a deployment contains no colon.
  const colon = version.indexOf(':');
  if (colon === -1) return null;
  return { deploymentName: version.slice(0, colon), buildId: version.slice(colon + 1) };
}

export function isSame(a: Build | null, b: Build | null): boolean {
  return a?.deploymentName === b?.deploymentName && a?.buildId === b?.buildId;
}

/** A live worker polls at least this often, even when there is nothing to do. */
const POLL_EVERY_MS = 70_000;

/**
 * Lists the workers that poll for workflow tasks, newest poll first. The server keeps them for a
 * few minutes.
 */
export async function listPollers(
  client: WorkflowServiceClient,
  queue: Queue,
): Promise<readonly Poller[]> {
  return (await readQueueState(client, queue)).pollers;
}

type WorkflowServiceClient = Pick<Client, 'workflowService'>;

interface Queue {
  readonly namespace: string;
  readonly taskQueue: string;
}

/** Returns the pollers, newest poll first, and the build that gets new runs. */
export async function readQueueState(
  { workflowService }: WorkflowServiceClient,
  { namespace, taskQueue }: Queue,
): Promise<QueueState> {
  const { pollers, versioningInfo } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue },
  });
  const found = (pollers ?? []).map(({ lastAccessTime }) => optionalTsToMs(lastAccessTime) ?? 0);
  const aheadMs = aheadOfServer(Math.max(0, ...found), Date.now());
  return {
    pollers: (pollers ?? [])
      .map(({ identity, lastAccessTime, deploymentOptions }) => ({
        identity: identity ?? '',
        lastPollAt: (optionalTsToMs(lastAccessTime) ?? 0) + aheadMs,
        gone: isGone(identity ?? ''),
        build: versionedBuild(deploymentOptions),
      }))
      .toSorted((a, b) => b.lastPollAt - a.lastPollAt),
    current: toBuild(versioningInfo?.currentDeploymentVersion),
  };
}

/** The server forgets a poller within this time after its last poll. */
const KEPT_MS = 6 * 60_000;

/**
 * Returns by how many ms this machine's clock is ahead of the server's, judged by the newest poll:
 * it is not in the future, and no older than the server's memory. 0 if both clocks may be right.
 */
function aheadOfServer(newestPollAt: number, now: number): number {
  const ageMs = now - newestPollAt;
  return newestPollAt > 0 && (ageMs < 0 || ageMs > KEPT_MS) ? ageMs : 0;
}

/** Temporal's number of the versioned mode of workers. */
const VERSIONED = 2;

/** Returns null for a worker that reports a build but is not versioned. */
function versionedBuild(
  options: (BuildFields & { workerVersioningMode?: unknown }) | null | undefined,
): Build | null {
  return options?.workerVersioningMode === VERSIONED ? toBuild(options) : null;
}

interface BuildFields {
  readonly deploymentName?: string | null;
  readonly buildId?: string | null;
}

function toBuild(version: BuildFields | null | undefined): Build | null {
  const { deploymentName, buildId } = version ?? {};
  return deploymentName && buildId ? { deploymentName, buildId } : null;
}

/** Returns the pollers that may still be alive. */
export function livePollers(pollers: readonly Poller[], now: number): readonly Poller[] {
  return pollers.filter(({ gone, lastPollAt }) => !gone && now - lastPollAt < POLL_EVERY_MS);
}

/** Returns whether the process of a poller has ended. False for other machines. */
function isGone(identity: string): boolean {
  const [, pid, host] = /^(\d+)@(.*)$/.exec(identity) ?? [];
  if (pid === undefined || host === undefined) return false;
  return hasExited({ pid: Number(pid), host }, { ranAsThisUser: false });
}

/** How long a live worker may take to process the probe. */
const ANSWER_MS = 2_000;
/** How long it may take to look up its agents. */
const AGENTS_MS = 5_000;

/**
 * Returns whether a live worker serves the task queue. The server lists a worker for minutes
 * after its end, so this function starts the workflow `probe` and waits for a worker to process it.
 */
export async function hasLiveWorker(client: Client, taskQueue: string): Promise<boolean> {
  const pollers = await listPollers(client, { namespace: client.options.namespace, taskQueue });
  // Not by the times of their polls: the clock of this machine may be minutes off.
  if (pollers.every(({ gone }) => gone)) return false;
  return await withProbe(client, { taskQueue, withinMs: ANSWER_MS }, processesProbe);
}

/** The answer of one worker about its agents. */
export interface AgentsAnswer {
  /** The identity of the worker, as the server lists its pollers. */
  readonly worker: string;
  /** The names of all its agents; null if its version of perdure cannot list them. */
  readonly agents: readonly string[] | null;
  /**
   * The agents in question that the worker does not have; null if its version of perdure cannot
   * report them.
   */
  readonly missing: readonly string[] | null;
  /** Whether its workflows file exports `probe`; otherwise, it cannot report anything. */
  readonly hasProbe: boolean;
}

/** A question to workers about their agents. */
interface AgentsQuestion {
  readonly taskQueue: string;
  /** The agents in question. */
  readonly agents: readonly string[];
}

/** Asks the worker that processes the probe about its agents. Returns null if none answers. */
export async function probeAgents(
  client: Client,
  { taskQueue, agents }: AgentsQuestion,
): Promise<AgentsAnswer | null> {
  const args = [{ agents }];
  return await withProbe(client, { taskQueue, withinMs: AGENTS_MS, args }, async (_, probe) => {
    // The server ends the probe in time.
    const event = await processingEvent(client, probe);
    const completed = event?.workflowTaskCompletedEventAttributes;
    const worker = (completed ?? event?.workflowTaskFailedEventAttributes)?.identity;
    if (!worker) return null;
    if (!completed) return { worker, agents: null, missing: null, hasProbe: false };
    const handle = client.workflow.getHandle(probe.workflowId, probe.runId);
    const result: unknown = await handle.result().catch(() => null);
    const { agents: all, missing } = isObject(result) ? result : {};
    return {
      worker,
      agents: isNames(all) ? all : null,
      missing: isNames(missing) ? missing : null,
      hasProbe: true,
    };
  });
}

/**
 * The server picks the worker that answers, so each round sends more probes than there are workers
 * left.
 */
const ROUNDS = 3;
const PROBES_PER_WORKER = 2;
const MAX_PROBES = 20;

/**
 * Asks workers about their agents: sends up to three rounds of probes, until each worker has
 * answered one or a round gets no answer.
 */
export async function askWorkers(
  client: Client,
  given: AgentsQuestion & { readonly workers: readonly string[] },
): Promise<readonly AgentsAnswer[]> {
  const answers = new Map<string, AgentsAnswer>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const left = given.workers.filter((worker) => !answers.has(worker)).length;
    if (left === 0) break;
    const probes = Math.min(MAX_PROBES, given.workers.length === 1 ? 1 : left * PROBES_PER_WORKER);
    const answered = await Promise.all(
      Array.from({ length: probes }, () => probeAgents(client, given)),
    );
    for (const answer of answered) if (answer !== null) answers.set(answer.worker, answer);
    if (answered.every((answer) => answer === null)) break;
  }
  return [...answers.values()];
}

/**
 * Whether the workers on a task queue have an agent: `lacking` if each that answers lacks it,
 * `unknown` if they cannot report it, and `silent` if none answers.
 */
export type ServedAgent =
  | { readonly is: 'served' | 'unknown' | 'silent' }
  | { readonly is: 'lacking'; readonly agents: readonly string[] };

interface NamedAgent {
  readonly taskQueue: string;
  readonly agent: string;
}

/**
 * Asks the workers on a task queue whether one of them has the agent. A key that may start runs may
 * lack the permission to ask; the answer is then `unknown`.
 */
export async function findServedAgent(client: Client, named: NamedAgent): Promise<ServedAgent> {
  try {
    return await askForAgent(client, named);
  } catch (error) {
    if (grpcCode(error) === GRPC.permissionDenied) return { is: 'unknown' };
    throw error;
  }
}

async function askForAgent(client: Client, { taskQueue, agent }: NamedAgent): Promise<ServedAgent> {
  const pollers = await listPollers(client, { namespace: client.options.namespace, taskQueue });
  // Not by the times of their polls: the clock of this machine may be minutes off.
  const workers = [...new Set(pollers.filter(({ gone }) => !gone).map(({ identity }) => identity))];
  if (workers.length === 0) return { is: 'silent' };
  const question = { taskQueue, agents: [agent] };
  const first = await probeAgents(client, question);
  if (first === null) return { is: 'silent' };
  const isAlone = workers.length === 1 || !first.missing?.includes(agent);
  const answers = isAlone
    ? [first]
    : [first, ...(await askWorkers(client, { ...question, workers }))];
  if (answers.some(({ missing }) => missing !== null && !missing.includes(agent))) {
    return { is: 'served' };
  }
  if (answers.some(({ missing }) => missing === null)) return { is: 'unknown' };
  return { is: 'lacking', agents: [...new Set(answers.flatMap(({ agents }) => agents ?? []))] };
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

interface Probe {
  readonly workflowId: string;
  readonly runId: string;
}

interface ProbeOptions {
  readonly taskQueue: string;
  /** After this time, the server ends the probe: a worker that comes later must not process it. */
  readonly withinMs: number;
  readonly args?: readonly unknown[];
}

/**
 * Keeps probes out of lists: the server leaves out workflows of a division, such as those behind
 * its schedules, unless a query names the division.
 */
const UNLISTED = new TypedSearchAttributes([
  {
    key: defineSearchAttributeKey('TemporalNamespaceDivision', SearchAttributeType.KEYWORD),
    value: 'perdure-probe',
  },
]);

/** Returns whether the server has refused the request itself, as a server without divisions may. */
function isInvalid(error: unknown): boolean {
  return grpcCode(error) === GRPC.invalidArgument;
}

/** How the id of each probe begins. */
export const PROBE_PREFIX = 'perdure-probe-';

async function withProbe<T>(
  client: Client,
  { taskQueue, withinMs, args = [] }: ProbeOptions,
  use: (client: Client, probe: Probe) => Promise<T>,
): Promise<T> {
  const options = {
    taskQueue,
    workflowId: `${PROBE_PREFIX}${randomUUID()}`,
    args: [...args],
    workflowExecutionTimeout: withinMs,
    workflowTaskTimeout: 1_000,
    staticSummary: 'is a worker alive?',
  };
  const handle = await client.workflow
    .start('probe', { ...options, typedSearchAttributes: UNLISTED })
    .catch(async (error: unknown) => {
      if (!isInvalid(error)) throw error;
      return await client.workflow.start('probe', options);
    });
  const { workflowId, firstExecutionRunId: runId } = handle;
  // The workflow is not deleted, because the server would then delay all other deletions for
  // minutes, including those after retention.
  return await use(client, { workflowId, runId });
}

async function processesProbe(client: Client, probe: Probe): Promise<boolean> {
  const controller = new AbortController();
  const processed = client.connection
    .withAbortSignal(controller.signal, () => processingEvent(client, probe))
    .then(
      (event) => event !== null,
      () => false,
    );
  const late = pause(ANSWER_MS, false, { signal: controller.signal }).catch(() => false);
  try {
    return await Promise.race([processed, late]);
  } finally {
    controller.abort();
  }
}

/**
 * Waits until the history shows that a worker has processed the workflow, and returns that event;
 * null if the workflow ends first. A worker with other workflows may not know `probe`: it fails the
 * task, but it is alive.
 */
async function processingEvent(
  { workflowService, options: { namespace } }: Client,
  execution: Probe,
): Promise<ProcessingEvent | null> {
  let nextPageToken: Uint8Array | undefined;
  do {
    const page = await workflowService.getWorkflowExecutionHistory({
      namespace,
      execution,
      waitNewEvent: true,
      ...(nextPageToken && { nextPageToken }),
    });
    const event = page.history?.events?.find(
      ({ workflowTaskCompletedEventAttributes, workflowTaskFailedEventAttributes }) =>
        workflowTaskCompletedEventAttributes ?? workflowTaskFailedEventAttributes,
    );
    if (event !== undefined) return event;
    nextPageToken = page.nextPageToken;
  } while (nextPageToken.length > 0);
  return null;
}

interface WorkerIdentity {
  readonly identity?: string | null;
}

/** The part of a history event that names the worker that has processed a workflow task. */
interface ProcessingEvent {
  readonly workflowTaskCompletedEventAttributes?: WorkerIdentity | null;
  readonly workflowTaskFailedEventAttributes?: WorkerIdentity | null;
}
