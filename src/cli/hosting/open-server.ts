import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { ServerHandle, ServerOptions } from '../../server/server-handle.js';
import type { CliContext, ServerRequest } from '../context.js';
import { UsageError } from '../exit-codes.js';
import { NoServerError } from '../../core/errors.js';

/**
 * Returns the server that the options, the environment, or the configuration name. Without one,
 * returns a running server, else the embedded server, which it starts unless `start` is false.
 * Throws a `NoServerError` if there is none.
 */
export async function openServer(
  context: CliContext,
  request: ServerRequest,
): Promise<ServerHandle> {
  const options = await serverOptions(context);
  if (request.start !== false) {
    const { ensureServer } = await import('../../server/ensure-server.js');
    return await ensureServer(options);
  }
  const { findServer } = await import('../../server/locate-server.js');
  const found = await findServer(options);
  if (found !== null) return found;
  throw new NothingRunsError(
    `No Temporal server is running for ${options.home}. Start one with \`perdure dev\`, ` +
      'or name one with --address or TEMPORAL_ADDRESS.',
  );
}

/** No server is named, none is running, and none may be started. */
export class NothingRunsError extends NoServerError {}

async function serverOptions(context: CliContext): Promise<ServerOptions> {
  const { options, env, home, note } = context;
  const { addressProblem } = await import('../../temporal/connection.js');
  const { loadClientConnectConfig } = await import('@temporalio/envconfig');
  const { connectionOptions, namespace: fromEnvironment } = loadClientConnectConfig({
    overrideEnvVars: definedOnly(env),
  });
  const config = await context.config();
  const address = options.address ?? config.address ?? connectionOptions.address;
  const named = options.address ?? config.address;
  const problem = named === undefined ? null : addressProblem(named);
  if (problem !== null) {
    throw new UsageError(
      options.address === undefined ? `configuration: ${problem}` : `--${problem}`,
    );
  }
  const namespace = options.namespace ?? config.namespace ?? fromEnvironment;
  return { home, env, note, ...(address && { address }), ...(namespace && { namespace }) };
}

/** The time between two attempts to reach a server that does not answer. */
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [500, 10_000];

/**
 * Returns the server of the context, for a worker: while nothing answers at the named address, notes
 * that once and tries again, as a running worker does when its server goes away. Returns null if the
 * signal aborts first.
 */
export async function awaitServer(
  context: CliContext,
  signal: AbortSignal,
): Promise<ServerHandle | null> {
  const { SilentServerError } = await import('../../server/locate-server.js');
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      return await context.server();
    } catch (error) {
      if (!(error instanceof SilentServerError)) throw error;
      if (waitMs === FIRST_WAIT_MS) context.note(`${error.message} The worker waits for it …`);
    }
    await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    waitMs = Math.min(2 * waitMs, MAX_WAIT_MS);
  }
  return null;
}

/** Connects to the server of the context. */
export async function openConnection(
  context: CliContext,
  request: ServerRequest,
): Promise<{ client: Client; close: () => Promise<void> }> {
  const server = await context.server(request);
  const [{ Client, Connection }, { CHANNEL_OPTIONS, connectionTarget }] = await Promise.all([
    import('@temporalio/client'),
    import('../../temporal/connection.js'),
  ]);
  const { address, namespace } = server;
  const target = connectionTarget({ address, namespace }, connectionEnv(context.env, server));
  const connection = await Connection.connect({ ...target.options, ...CHANNEL_OPTIONS });
  return {
    client: new Client({ connection, namespace }),
    close: () => connection.close(),
  };
}

/**
 * Returns the environment for a connection. Removes Temporal's keys and TLS settings unless the
 * server was named: they are not meant for a server that was found here.
 */
export function connectionEnv(env: NodeJS.ProcessEnv, server: ServerHandle): NodeJS.ProcessEnv {
  if (server.how === 'address') return env;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_')));
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
