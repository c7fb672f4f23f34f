import { shellWord } from '../core/text/text.js';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { addressOf, probeOwnServer } from './dev-server.js';
import {
  retentionHours,
  isListening,
  isLoopbackAddress,
  probeAddress,
  withConnection,
} from './namespace.js';
import {
  isOwn,
  listenerAt,
  type Listener,
  endProcess,
  serverProcesses,
  type ServerProcess,
} from './processes.js';
import {
  defaultPort,
  type ServerHandle,
  type ServerOptions,
  readRecord,
  writeRecord,
  DEFAULT_NAMESPACE,
  LOOPBACK,
  UI_PORT_OFFSET,
} from './server-settings.js';
import { hasDatabase, locateHome, type ServerHome } from './server-home.js';
import { NoServerError } from '../core/errors.js';

/**
 * Returns the running server that `ensureServer` would use, and starts none. Returns null if there
 * is none. Throws a `NoServerError` if a named address does not answer.
 */
export async function findServer(options: ServerOptions): Promise<ServerHandle | null> {
  if (options.address) return await namedServer(options, options.address);
  const home = await locateHome(options.home);
  const own = await ownProcess(home);
  if (!own) return await foreignServer(options, home);
  if (!(await hasDatabase(home))) return null;
  const answer = await probeOwnServer(own);
  return answer.alive ? ownHandle(options, own, { version: answer.version, how: 'adopted' }) : null;
}

/** Nothing answers at a named address. It may only be a matter of time. */
export class SilentServerError extends NoServerError {}

/** Returns the server at a named address. Its keys and TLS settings come from the environment. */
export async function namedServer(options: ServerOptions, address: string): Promise<ServerHandle> {
  const env = options.env ?? process.env;
  const answer = await probeAddress(address, { env, timeoutMs: 5000 });
  if (!answer.alive) {
    const Failure = answer.isSilent ? SilentServerError : NoServerError;
    throw new Failure(
      `No Temporal server answers at ${address} (${answer.reason}). Start it, or correct ` +
        'TEMPORAL_ADDRESS or --address; without either, perdure starts the embedded server.',
    );
  }
  return await foreignHandle(options, address, { how: 'address', version: answer.version, env });
}

/**
 * Returns this user's Temporal server at the default port, unless it is the embedded server of a
 * home. Returns null for a home with its own database, because its runs are stored there. Notes a
 * server that is not used because another user owns it.
 */
export async function foreignServer(
  options: ServerOptions,
  home: ServerHome,
): Promise<ServerHandle | null> {
  const port = defaultPort(options);
  if (port === null || (await hasDatabase(home))) return null;
  const address = addressOf({ port });
  if (!(await isListening(address))) return null;
  const listener = await listenerAt(port);
  if (!listener || !isOwn(listener)) {
    options.note?.(foreignListenerMessage(address, listener));
    return null;
  }
  const answer = await probeAddress(address);
  if (!answer.alive) return null;
  const embedded = (await serverProcesses()).some((server) => server.port === port);
  if (embedded) return null;
  return await foreignHandle(options, address, { how: 'adopted', version: answer.version });
}

/**
 * Returns the message about a foreign listener, which could read every conversation and send any
 * answer.
 */
function foreignListenerMessage(address: string, listener: Listener | null | undefined): string {
  const owner =
    listener === undefined || listener === null
      ? 'belongs to an unknown user'
      : `belongs to user ${listener.uid}, not to you`;
  return `The server at ${address} ${owner} and is not used. To use it anyway, set TEMPORAL_ADDRESS=${address}`;
}

/** Returns the process of this home's embedded server, ready or not; null if none is running. */
export async function ownProcess(home: ServerHome): Promise<ServerProcess | null> {
  const all = await serverProcesses();
  const here = all.find((server) => server.databaseFile === home.databaseFile);
  if (here) return here;
  // The server of a moved folder has it open under the former path; a copied folder has no server.
  const record = await readRecord(home.recordFile);
  const former = all.find((server) => server.pid === record?.pid);
  return former && !existsSync(former.databaseFile) ? former : null;
}

/**
 * Ends the embedded server of this home and waits until it is gone. Returns false if none runs.
 * Commands never call it: the server outlives them. Tests and benchmarks do.
 */
export async function stopServer(folder: string): Promise<boolean> {
  const home = await locateHome(folder);
  const first = await ownProcess(home);
  if (!first) return false;
  // There is more than one process if the CLI is a script that runs the real one.
  for (let server: ServerProcess | null = first; server; server = await ownProcess(home)) {
    await endProcess(server.pid);
  }
  const record = await readRecord(home.recordFile);
  // On a full disk the record keeps the pid of a dead process, which the process table corrects.
  if (record) await writeRecord(home.recordFile, { ...record, pid: null }).catch(() => undefined);
  return true;
}

/** Returns the handle of this home's embedded server. */
export function ownHandle(
  options: ServerOptions,
  server: ServerProcess,
  found: { readonly version: string | null; readonly how: 'adopted' | 'started' },
): ServerHandle {
  return {
    address: addressOf(server),
    namespace: options.namespace ?? DEFAULT_NAMESPACE,
    uiUrl: `http://${LOOPBACK}:${server.uiPort}`,
    how: found.how,
    version: found.version,
    pid: server.pid,
    home: resolve(options.home),
  };
}

interface Foreign {
  readonly how: 'address' | 'adopted';
  readonly version: string | null;
  readonly env?: NodeJS.ProcessEnv;
}

async function foreignHandle(
  options: ServerOptions,
  address: string,
  found: Foreign,
): Promise<ServerHandle> {
  const namespace = options.namespace ?? DEFAULT_NAMESPACE;
  // A key that can start runs may lack permission to describe the namespace.
  const hours = await withConnection(address, found.env ? { env: found.env } : {}, (connection) =>
    retentionHours(connection, namespace),
  ).catch(() => 0);
  if (hours === null) {
    throw new NoServerError(
      `The Temporal server at ${address} has no namespace ${namespace}. Correct ` +
        `TEMPORAL_NAMESPACE, or create it: temporal operator namespace create -n ${shellWord(namespace)}`,
    );
  }
  const { how, version } = found;
  const uiUrl = await localUiUrl(address);
  return { address, namespace, uiUrl, how, version, pid: null, home: resolve(options.home) };
}

/**
 * Returns the Temporal UI of a server on this machine, at the dev server's usual port; null if none
 * listens.
 */
async function localUiUrl(address: string): Promise<string | null> {
  if (!isLoopbackAddress(address)) return null;
  const ui = address.replace(/:(\d+)$/, (_, port: string) => `:${Number(port) + UI_PORT_OFFSET}`);
  return (await isListening(ui)) ? `http://${ui}` : null;
}
