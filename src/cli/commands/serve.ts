import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import type { Config } from '../../config.js';
import { type CliContext, type Command, EXIT, UsageError } from '../context.js';
import { formatCount } from '../format/format.js';
import { awaitServer, catchInterrupt, createHosting } from '../hosting/hosting.js';
import { PORT, asUsage, startServing } from '../hosting/serving.js';
import { visible } from '../../core/state/summaries.js';
import { findServedAgent } from '../../temporal/pollers.js';
import { lackedRuns, noteLackedRuns } from '../hosting/lacked-runs.js';
import { metricsPlace } from '../hosting/metrics.js';
import { noteServer } from '../hosting/server-notes.js';
import { osUser } from '../input/option-parsers.js';
import { withOptions } from '../input/options.js';

interface ServeCommandOptions {
  readonly host?: string;
  readonly port?: number;
  /** False for `--no-worker`. */
  readonly worker: boolean;
  readonly metrics?: string;
}

/**
 * `serve`: serves HTTP until interrupted: the API, the console, and the interfaces for other clients. It
 * starts the embedded server and a worker where none is running.
 */
export const serve: Command<ServeCommandOptions> = {
  declare: (entry) => withOptions(entry, 'host', 'port', 'noWorker', 'metrics'),
  async run(context, { host = '127.0.0.1', port = PORT, worker, metrics: exported }) {
    const config = await context.config();
    await checkServe(context, { config, host, port });
    if (!worker && exported !== undefined) {
      throw new UsageError(
        '--no-worker: expected no --metrics, which a worker exports; omit one of them',
      );
    }
    if (!worker) keepHeapSmall();
    const metrics = worker ? await metricsPlace(exported, context) : null;
    const interrupt = catchInterrupt();
    const found = await awaitServer(context, interrupt);
    if (found === null) return EXIT.completed;
    noteServer(context, found);
    const taskQueue = await context.taskQueue();
    const lackLater = async (): Promise<string | null> => await lackedRuns(context, taskQueue);
    const hosting = createHosting(context, taskQueue, { metrics, lackLater });
    const serving = await startServing(context, { host, port });
    try {
      const { address, namespace } = found;
      const place = `task queue "${taskQueue}" of ${address}, namespace "${namespace}"`;
      context.note(
        `serving ${serving.url} (the console, and the API) for ${place}, with ${formatCount(config.agents.length, 'agent')}${serving.isVerified ? '' : '; without keys, for this machine only'}`,
      );
      if (worker) {
        await hosting.ensure();
        context.note(
          hosting.isHosting
            ? 'A worker runs in this process.'
            : 'A worker runs elsewhere. If it ends, one starts in this process.',
        );
        if (!hosting.isHosting && metrics !== null) {
          context.note(
            `${metrics.source}: no metrics yet, which only a worker in this process exports.`,
          );
        }
        if (hosting.isHosting) await noteLackedRuns(context, taskQueue);
        else await noteLacking(context, { agents: config.agents, taskQueue });
      }
      if (context.options.json) context.out(JSON.stringify({ url: serving.url }));
      const { died } = hosting;
      const over = AbortSignal.any([interrupt, died]);
      if (!over.aborted) await once(over, 'abort');
      if (!interrupt.aborted) died.throwIfAborted();
      return EXIT.completed;
    } finally {
      await serving.close();
      await hosting.stop();
    }
  },
};

/**
 * Lets V8 prefer memory to speed: the space of young objects stays as small as it began, and that of old ones
 * grows in small steps. A server of streams mostly waits. It takes about a quarter less memory, and answers
 * about a tenth fewer requests a second.
 */
function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--optimize-for-size');
}

/** Notes which agents of the configuration the worker elsewhere lacks: runs of those would be blocked. */
async function noteLacking(
  context: CliContext,
  { agents, taskQueue }: Pick<Config, 'agents'> & { readonly taskQueue: string },
): Promise<void> {
  const client = await context.client();
  const served = await Promise.all(
    agents.map(async ({ name }) => await findServedAgent(client, { taskQueue, agent: name })),
  );
  const lacking = agents.filter((_, at) => served[at]?.is === 'lacking').map(({ name }) => name);
  if (lacking.length === 0) return;
  context.note(
    `The worker elsewhere lacks ${lacking.map(visible).join(', ')}, so runs of ${lacking.length === 1 ? 'it' : 'these'} are blocked: ` +
      `start a worker with this configuration on task queue "${visible(taskQueue)}", or give the project a \`taskQueue\` of its own.`,
  );
}

/** Checks keys and address before anything is started. Throws a `UsageError`. */
async function checkServe(
  { env }: CliContext,
  { config, host, port }: { readonly config: Config; readonly host: string; readonly port: number },
): Promise<void> {
  if (!(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw new UsageError(`--port: expected 1 to 65535, or 0 for any free port; got ${port}`);
  }
  const [{ authenticator, hasKeys }, { checkHost }] = await Promise.all([
    import('../../http/principals.js'),
    import('../../http/listen.js'),
  ]);
  const options = config.serve ?? {};
  try {
    authenticator(options, { env, local: osUser() });
    checkHost(host, hasKeys(options, env));
  } catch (error) {
    throw asUsage(error);
  }
}
