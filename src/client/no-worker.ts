import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { visible } from '../core/state/summaries.js';
import { isObject } from '../core/text/json.js';
import { shellLine, shellWord, show } from '../core/text/text.js';
import { describeRun } from '../history/read-run.js';
import { isTestHome } from '../server/locate-target.js';
import { perdureHome } from '../storage/files.js';
import { connectionTarget, namedAddress } from '../temporal/connection.js';
import { listPollers } from '../temporal/pollers.js';
import { resolveTaskQueue } from '../temporal/task-queue.js';

/** How a client was made, as far as the start of a worker for its runs depends on it. */
export interface ClientOrigin {
  /** The client was given no task queue, so it starts runs on the default one. */
  readonly hasDefaultQueue: boolean;
  /** The task queue of its configuration, or the default one. */
  readonly configQueue: string;
  /** The server was named, and not found by the home. */
  readonly isNamed: boolean;
  readonly home: string;
  /** Returns the command that starts a worker of a task queue. Absent: one of a project without options. */
  readonly startWorker?: StartsWorker | undefined;
}

/** Returns the command that starts a worker of a task queue. */
export type StartsWorker = (taskQueue: string) => string;

/** How long a result is awaited before the absence of a worker is a warning. */
const PATIENCE_MS = 5_000;
/** The same on the default queue, which a program rarely wants: the task queue is probably missing. */
const DEFAULT_QUEUE_PATIENCE_MS = 1_000;
/** The task queues that were warned about, with their namespaces. */
const warnedAbout = new Set<string>();

interface Wait {
  /** Fires when the wait for the result has ended. */
  readonly over: AbortSignal;
  readonly isWorking: () => Promise<boolean>;
  readonly origin?: ClientOrigin | undefined;
}

/** Warns once for each task queue if a run has work, and the server knows no worker for it. */
export async function warnWithoutWorker(
  client: Client,
  id: string,
  { over, isWorking, origin = unknownOrigin() }: Wait,
): Promise<void> {
  const patienceMs = origin.hasDefaultQueue ? DEFAULT_QUEUE_PATIENCE_MS : PATIENCE_MS;
  await pause(patienceMs, undefined, { signal: over, ref: false });
  const { taskQueue } = await describeRun(client, id);
  const { namespace } = client.options;
  const queue = `${namespace} ${taskQueue}`;
  if (warnedAbout.has(queue)) return;
  const pollers = await listPollers(client, { namespace, taskQueue });
  if (pollers.some(({ gone }) => !gone)) return;
  if (!(await isWorking()) || over.aborted || warnedAbout.has(queue)) return;
  warnedAbout.add(queue);
  process.emitWarning(
    `run ${visible(id)} waits, because no worker serves task queue ${show(taskQueue)}; ${fixFor(client, taskQueue, origin)}`,
    { code: 'PERDURE_NO_WORKER' },
  );
}

function unknownOrigin(): ClientOrigin {
  const home = perdureHome(process.env);
  return { hasDefaultQueue: false, configQueue: '', isNamed: true, home };
}

function fixFor(client: Client, taskQueue: string, origin: ClientOrigin): string {
  if (origin.startWorker !== undefined) return `start one with: ${origin.startWorker(taskQueue)}`;
  if (origin.hasDefaultQueue && taskQueue === resolveTaskQueue({}, {})) {
    return 'pass the configuration, createClient({ config }), or the `taskQueue` of your worker, or start a worker of this queue';
  }
  if (isTestHome(origin.home)) {
    const queue = taskQueue === origin.configQueue ? '' : ` taskQueue: ${show(taskQueue)},`;
    return `in a test, create one: await createWorker({ config,${queue} address, home })`;
  }
  return `start one, for example with: ${workerCommand(client, taskQueue, origin)}`;
}

/** Returns the command for a worker, with what the command would not find by itself in the environment of this process. */
function workerCommand(client: Client, taskQueue: string, { isNamed, home }: ClientOrigin): string {
  const { env } = process;
  const address = isNamed ? addressOf(client) : null;
  const { namespace } = client.options;
  const isOtherServer = address !== null && address !== namedAddress({}, env);
  const isOtherNamespace = namespace !== connectionTarget({}, env).namespace;
  const program = 'npx perdure worker';
  return shellLine({
    program: home === perdureHome(env) ? program : `PERDURE_HOME=${shellWord(home)} ${program}`,
    operands: [],
    options: [
      '--task-queue',
      taskQueue,
      ...(isOtherServer ? ['--address', address] : []),
      ...(isOtherNamespace ? ['--namespace', namespace] : []),
    ],
  });
}

/** Returns the address that a client is connected to; null if its connection is not the SDK's own. */
function addressOf({ connection }: Client): string | null {
  const options = 'options' in connection ? connection.options : null;
  const address = isObject(options) ? options['address'] : null;
  return typeof address === 'string' ? address : null;
}
