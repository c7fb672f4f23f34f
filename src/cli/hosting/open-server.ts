import type { Client } from '@temporalio/client';
import type { ServerHandle, ServerOptions } from '../../server/server-handle.js';
import type { CliContext, ServerRequest } from '../context.js';
import { NoServerError } from '../../core/errors.js';

/**
 * The server that the options, the environment or the configuration name; else a running one; else,
 * unless the wish says no, the embedded one. Throws a `NoServerError`.
 */
export async function openServer(context: CliContext, wish: ServerRequest): Promise<ServerHandle> {
  const options = await serverOptions(context);
  if (wish.start !== false) {
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

/** Nobody named a server, none is running, and none was to be started. */
export class NothingRunsError extends NoServerError {}

async function serverOptions(context: CliContext): Promise<ServerOptions> {
  const { options, env, home, say } = context;
  const { loadClientConnectConfig } = await import('@temporalio/envconfig');
  const { connectionOptions, namespace: fromEnvironment } = loadClientConnectConfig({
    overrideEnvVars: definedOnly(env),
  });
  const known = await context.config();
  const address = options.address ?? known.address ?? connectionOptions.address;
  const namespace = options.namespace ?? known.namespace ?? fromEnvironment;
  return { home, env, say, ...(address && { address }), ...(namespace && { namespace }) };
}

export async function openClient(
  context: CliContext,
  wish: ServerRequest,
): Promise<{ client: Client; close: () => Promise<void> }> {
  const server = await context.server(wish);
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

/** Keys and TLS of the environment are for the server that somebody named, not for one found here. */
export function connectionEnv(env: NodeJS.ProcessEnv, server: ServerHandle): NodeJS.ProcessEnv {
  if (server.how === 'address') return env;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TEMPORAL_')));
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
