import { InputError } from '../../core/errors.js';
import { type CliContext, UsageError } from '../context.js';
import { osUser } from '../input/option-parsers.js';

/** The port of `serve` and `dev`, unless they are given another one. */
export const PORT = 8_788;

/** The console and the API, served by this process. */
export interface Serving {
  readonly url: string;
  readonly isVerified: boolean;
  close(): Promise<void>;
}

/** Serves HTTP for the server of the context. Throws a `UsageError` if it cannot listen. */
export async function startServing(
  context: CliContext,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Serving> {
  const [{ openClient }, { openServer }, { listen }] = await Promise.all([
    import('../../client/create-client.js'),
    import('../../http/create-server.js'),
    import('../../http/listen.js'),
  ]);
  const { env, home } = context;
  const config = await context.config();
  const client = await openClient({
    client: await context.client(),
    taskQueue: await context.taskQueue(),
    config,
    env,
    home,
  });
  const server = await openServer({
    client,
    config,
    env,
    localName: osUser(),
    log: (line) => context.note(line),
  });
  try {
    const { isVerified } = server;
    const listening = await listen(server, { host, port });
    return { url: listening.url, isVerified, close: () => listening.close() };
  } catch (error) {
    throw asUsage(error);
  }
}

/** Returns an error about the options of a server as one of the command. */
export function asUsage(error: unknown): unknown {
  if (!InputError.isInstance(error)) return error;
  return new UsageError(error.message.replace(/^(?=(?:host|port): )/, '--'), { cause: error });
}
