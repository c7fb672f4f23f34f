import { once } from 'node:events';
import {
  deploymentProblem,
  promotionCommand,
  deploymentTitle,
  type WorkerBuild,
  type DeploymentOptions,
} from '../../worker/deployment.js';
import type { LiveOptions } from '../../live/live-options.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, UsageError, type ExitCode } from '../exit-codes.js';
import { hostWorker } from '../hosting/hosting.js';
import { catchInterrupt } from '../hosting/interrupt.js';
import { watchEventLoop } from '../hosting/event-loop.js';
import { awaitServer } from '../hosting/open-server.js';
import { noteServer } from '../hosting/note-server.js';
import { formatCount } from '../format/format.js';

export interface WorkerCommandOptions {
  readonly maxCached?: number;
  readonly deployment?: string;
  readonly buildId?: string;
  readonly promote: boolean;
  /** False for `--no-live`. */
  readonly live: boolean;
  readonly livePort?: number;
  readonly liveHost?: string;
}

/** `worker`: runs a worker until interrupted. */
export const worker: Command<WorkerCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry,
      'maxCached',
      'deployment',
      'buildId',
      'noPromote',
      'livePort',
      'liveHost',
      'noLive',
    ),
  run: runWorker,
};

async function runWorker(context: CliContext, options: WorkerCommandOptions): Promise<ExitCode> {
  const { maxCached } = options;
  const deployment = deploymentOptions(options);
  if (maxCached !== undefined && !(Number.isInteger(maxCached) && maxCached >= 0)) {
    throw new UsageError(`--max-cached: expected a whole number from 0, got ${maxCached}`);
  }
  const signal = catchInterrupt();
  const server = await awaitServer(context, signal);
  if (server === null) return EXIT.completed;
  noteServer(context, server);
  const running = await hostWorker(context, {
    taskQueue: await context.taskQueue(),
    showLog: true,
    live: liveOptions(options),
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
  if (live !== null) context.note(`Live stream: GET ${live.url}/runs/ID/events`);
  if (deployed !== null) context.note(buildLine(deployed));
  if (context.options.json) {
    const build = deployed && {
      deployment: { name: deployed.deploymentName, buildId: deployed.buildId },
    };
    const line = { identity, taskQueue, address, namespace, agents, live: live?.url ?? null };
    context.out(JSON.stringify({ ...line, ...build }));
  }
  const unwatch = watchEventLoop(context.note);
  try {
    if (!signal.aborted) {
      await Promise.race([running.stopped, once(signal, 'abort')]);
    }
    context.note('The worker stops; calls that it has not finished are left to another worker.');
    await running.shutdown();
    return EXIT.completed;
  } finally {
    unwatch();
  }
}

function liveOptions({
  live,
  livePort: port,
  liveHost: host,
}: WorkerCommandOptions): LiveOptions | false {
  if (live) return { ...(port !== undefined && { port }), ...(host !== undefined && { host }) };
  if (port === undefined && host === undefined) return false;
  throw new UsageError('--no-live: expected no --live-port and no --live-host; omit one of them');
}

function deploymentOptions({
  deployment: name,
  buildId,
  promote,
}: WorkerCommandOptions): DeploymentOptions | null {
  if (name === undefined) {
    if (buildId === undefined && promote) return null;
    const flag = promote ? '--build-id' : '--no-promote';
    throw new UsageError(`${flag}: expected --deployment NAME, got none; name the deployment`);
  }
  const options = { name, promote, ...(buildId !== undefined && { buildId }) };
  const problem = deploymentProblem(options);
  if (problem !== null) throw new UsageError(problem);
  return options;
}

function buildLine(deployed: WorkerBuild): string {
  if (deployed.isCurrent) return `${deploymentTitle(deployed)}: current; new runs start on it`;
  return `${deploymentTitle(deployed)}: not current; promote it to start new runs on it: ${promotionCommand(deployed)}`;
}
