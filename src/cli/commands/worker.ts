import { once } from 'node:events';
import {
  deploymentFault,
  promotionCommand,
  titleOf,
  type Deployed,
  type DeploymentOptions,
} from '../../worker/deployment.js';
import type { LiveOptions } from '../../live/live-options.js';
import type { Command } from '../command.js';
import { EXIT, UsageError } from '../exit-codes.js';
import { hostWorker } from '../hosting/hosting.js';
import { catchInterrupt } from '../hosting/interrupt.js';
import { watchEventLoop } from '../hosting/event-loop.js';
import { noteServer } from '../hosting/note-server.js';
import { formatCount } from '../format/format.js';

export interface WorkerCommandOptions {
  readonly maxCached?: number;
  readonly deployment?: string;
  readonly buildId?: string;
  readonly promote: boolean;
  /** `--no-live` makes it false. */
  readonly live: boolean;
  readonly livePort?: number;
  readonly liveHost?: string;
}

export const worker: Command<WorkerCommandOptions> = async (context, options) => {
  const { maxCached } = options;
  const deployment = deploymentOf(options);
  if (maxCached !== undefined && !(Number.isInteger(maxCached) && maxCached >= 0)) {
    throw new UsageError(`--max-cached ${maxCached}: give a whole number from 0`);
  }
  const signal = catchInterrupt();
  const server = await context.server();
  noteServer(context, server);
  const running = await hostWorker(context, {
    taskQueue: await context.taskQueue(),
    showLog: true,
    live: liveOf(options),
    ...(maxCached !== undefined && { maxCachedWorkflows: maxCached }),
    ...(deployment && { deployment }),
  });
  const { identity, taskQueue, deployed, live } = running;
  const { address, namespace, uiUrl } = server;
  const agents = (await context.config()).agents.map(({ name }) => name);
  const place = `task queue "${taskQueue}" of ${address}, namespace "${namespace}"`;
  const ui = uiUrl === null ? '' : `; Temporal UI: ${uiUrl}`;
  context.note(
    `Worker ${identity} on ${place}, with ${formatCount(agents.length, 'agent')}: ${agents.join(', ')}${ui}`,
  );
  if (live !== null) context.note(`Read along: GET ${live.url}/runs/ID/events`);
  if (deployed !== null) context.note(standing(deployed));
  if (context.options.json) {
    const build = deployed && {
      deployment: { name: deployed.deploymentName, buildId: deployed.buildId },
    };
    const told = { identity, taskQueue, address, namespace, agents, live: live?.url ?? null };
    context.out(JSON.stringify({ ...told, ...build }));
  }
  const unwatch = watchEventLoop(context.note);
  try {
    if (!signal.aborted) {
      await Promise.race([running.stopped, once(signal, 'abort')]);
    }
    context.note('The worker stops; what it has not ended is left to another one.');
    await running.shutdown();
    return EXIT.completed;
  } finally {
    unwatch();
  }
};

function liveOf({
  live,
  livePort: port,
  liveHost: host,
}: WorkerCommandOptions): LiveOptions | false {
  if (live) return { ...(port !== undefined && { port }), ...(host !== undefined && { host }) };
  if (port === undefined && host === undefined) return false;
  throw new UsageError('--no-live contradicts --live-port and --live-host; leave one of them out');
}

function deploymentOf({
  deployment: name,
  buildId,
  promote,
}: WorkerCommandOptions): DeploymentOptions | null {
  if (name === undefined) {
    if (buildId === undefined && promote) return null;
    const flag = promote ? '--build-id' : '--no-promote';
    throw new UsageError(
      `${flag} says something about a deployment: name it with --deployment NAME`,
    );
  }
  const options = { name, promote, ...(buildId !== undefined && { buildId }) };
  const fault = deploymentFault(options);
  if (fault !== null) throw new UsageError(fault);
  return options;
}

function standing(deployed: Deployed): string {
  if (deployed.isCurrent) return `${titleOf(deployed)}: current, new runs begin on it`;
  return `${titleOf(deployed)}: not current; new runs begin on it after: ${promotionCommand(deployed)}`;
}
