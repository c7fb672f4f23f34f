import { InputError } from '../../core/errors.js';
import type { HttpServer } from '../../http/create-server.js';
import type { Listening } from '../../http/listen.js';
import { type CliContext, UsageError } from '../context.js';
import { osUser } from '../input/option-parsers.js';
import { nextCommandOf, runnableText, runnableTextElsewhere } from '../reports/next-command.js';
import { announceConsole } from './consoles.js';

/** The port of `serve` and `dev`, unless they are given another one. */
export const PORT = 8_788;

/** The console and the API, served by this process. */
export interface Serving {
  readonly url: string;
  readonly isVerified: boolean;
  close(): Promise<void>;
}

/** Creates the console and the API for the server of the context. */
async function openDoors(context: CliContext): Promise<HttpServer> {
  const [{ openClient }, { openServer }] = await Promise.all([
    import('../../client/create-client.js'),
    import('../../http/create-server.js'),
  ]);
  const { env, home, options } = context;
  const config = await context.config();
  const taskQueue = await context.taskQueue();
  const startWorker = (queue: string): string =>
    nextCommandOf(
      { env, options: queue === taskQueue ? options : { ...options, taskQueue: queue } },
      ['worker'],
    );
  const given = { client: await context.client(), taskQueue, config, env, home };
  const client = await openClient(given, { startWorker });
  const log = (line: string): void => context.note(runnableText(context, line));
  return await openServer(
    { client, config, env, localName: osUser(), log },
    { runnable: (text) => runnableTextElsewhere(context, text) },
  );
}

/** Serves HTTP for the server of the context. Throws a `UsageError` if it cannot listen. */
export async function startServing(
  context: CliContext,
  place: { readonly host: string; readonly port: number },
): Promise<Serving> {
  const [server, { listen }] = await Promise.all([
    openDoors(context),
    import('../../http/listen.js'),
  ]);
  try {
    const { isVerified } = server;
    const listening = await listen(server, place);
    const { url } = listening;
    const { address, namespace } = await context.server();
    const withdraw = await announceConsole(context.home, { url, address, namespace });
    const close = async (): Promise<void> => {
      await withdraw();
      await listening.close();
    };
    return { url, isVerified, close };
  } catch (error) {
    throw asUsage(error);
  }
}

/** Returns an error about the options of a server as one of the command. */
export function asUsage(error: unknown): unknown {
  if (!InputError.isInstance(error)) return error;
  return new UsageError(error.message.replace(/^(?=(?:host|port): )/, '--'), { cause: error });
}

/** The first port for the console of a command that follows a run: `serve` and `codec` keep theirs. */
const FIRST_PORT = 8_790;
const PORTS = 10;

/**
 * Serves the console on a free port of this machine while a command follows a run. The first request
 * loads it, so it does not delay a run whose page is never opened. Returns null with `--json`, if no port is
 * free, and for a server that the user has named, since anyone on this machine may open the page.
 */
export async function serveWhileFollowing(context: CliContext): Promise<Listening | null> {
  const { how } = await context.server();
  if (context.options.json || how === 'address') return null;
  const { listen } = await import('../../http/listen.js');
  let doors: Promise<HttpServer> | undefined;
  const server = {
    isVerified: false,
    fetch: async (request: Request) => await (await (doors ??= openDoors(context))).fetch(request),
  };
  const ports = [...Array.from({ length: PORTS }, (_, at) => FIRST_PORT + at), 0];
  for (const port of ports) {
    try {
      return await listen(server, { port });
    } catch (error) {
      if (!InputError.isInstance(error)) throw error;
    }
  }
  return null;
}
