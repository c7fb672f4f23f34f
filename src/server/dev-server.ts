import { spawn } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { SEARCH_ATTRIBUTES } from '../temporal/grpc.js';
import { PRIVATE } from '../storage/files.js';
import { NoServerError } from '../core/errors.js';
import { shellWord } from '../core/text/text.js';
import {
  minimalEnvironment,
  messageOf,
  DEFAULT_NAMESPACE,
  DYNAMIC_CONFIG,
  LOOPBACK,
  sqlitePragmas,
  type Durability,
  defaultPort,
  type ServerHandle,
  type ServerOptions,
  readRecord,
  writeRecord,
  UI_PORT_OFFSET,
} from './server-settings.js';
import {
  isHeldBy,
  isOwn,
  listenerAt,
  processLife,
  serverProcesses,
  type ServerProcess,
  type Listener,
  endProcess,
} from './processes.js';
import {
  probeAddress,
  type Probe,
  retentionHours,
  isListening,
  isLoopbackAddress,
  withConnection,
} from './namespace.js';
import { type ServerHome, hasDatabase, locateHome } from './server-home.js';

const READY_LIMIT_MS = 60_000;
const POLL_MS = 40;
/** The time limit of one probe: gRPC detects late that the server died during a call. */
const ANSWER_LIMIT_MS = 1000;
const LOG_LIMIT_BYTES = 4 * 1024 * 1024;
const LOG_LINES_SHOWN = 12;

/** The server to start. */
interface DevServer {
  readonly home: ServerHome;
  /** The path of the Temporal CLI. */
  readonly cli: string;
  readonly port: number;
  readonly uiPort: number;
  readonly namespace: string;
  readonly durability: Durability;
  /** The server ends with this process; null or absent if it outlives its starter. */
  readonly ownerPid?: number | null;
}

/**
 * Starts the server in its own process group, so neither Ctrl-C nor the death of this process ends
 * it. Returns its pid as soon as it runs, long before it is ready. Throws a `NoServerError` if the
 * program cannot be started.
 */
export async function spawnDevServer(server: DevServer): Promise<number> {
  const log = await openLog(server.home.logFile);
  try {
    const child = withPrivateUmask(() =>
      spawn(server.cli, devServerArguments(server), {
        cwd: server.home.folder,
        detached: true,
        stdio: ['ignore', log.fd, log.fd],
        env: minimalEnvironment(process.env),
      }),
    );
    await new Promise((done, reject) => {
      child.once('spawn', done);
      child.once('error', reject);
    });
    child.unref();
    if (child.pid === undefined) throw new Error('it has no process id');
    if (typeof server.ownerPid === 'number') endWith(server.ownerPid, child.pid);
    return child.pid;
  } catch (error) {
    throw new NoServerError(
      `The Temporal CLI ${server.cli} cannot be started (${messageOf(error)}). ` +
        'Make it executable, or name another one in TEMPORAL_CLI_PATH.',
    );
  } finally {
    await log.close();
  }
}

/**
 * Waits while both processes live. If the owner dies first, ends the process group of the server.
 */
const GUARD =
  'while kill -0 "$1"; do kill -0 "$2" || exit 0; sleep 1; done; ' +
  'kill -- "-$2"; sleep 5; kill -9 -- "-$2"';

/** Ends the server within about a second of the death of its owner, even by `kill -9`. */
function endWith(owner: number, server: number): void {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', String(owner), String(server)], {
    cwd: '/',
    detached: true,
    stdio: 'ignore',
    env: minimalEnvironment(process.env),
  });
  guard.on('error', () => undefined);
  guard.unref();
}

/**
 * Starts a process whose files only this user can access: the database, its journal, and its index.
 */
function withPrivateUmask<T>(start: () => T): T {
  const before = process.umask(0o077);
  try {
    return start();
  } finally {
    process.umask(before);
  }
}

/**
 * Returns the arguments of the CLI. `process-table.ts` parses the first ones, so their order
 * matters.
 */
function devServerArguments(server: DevServer): readonly string[] {
  return [
    'server',
    'start-dev',
    '--port',
    String(server.port),
    '--ui-port',
    String(server.uiPort),
    '--db-filename',
    server.home.databaseFile,
    '--ip',
    LOOPBACK,
    '--log-level',
    'error',
    ...(server.namespace === DEFAULT_NAMESPACE ? [] : ['--namespace', server.namespace]),
    ...optionPairs(
      '--dynamic-config-value',
      Object.entries(DYNAMIC_CONFIG).map(([key, value]) => `${key}=${JSON.stringify(value)}`),
    ),
    ...optionPairs(
      '--sqlite-pragma',
      Object.entries(sqlitePragmas(server.durability)).map(([key, value]) => `${key}=${value}`),
    ),
    ...optionPairs(
      '--search-attribute',
      SEARCH_ATTRIBUTES.map((name) => `${name}=Keyword`),
    ),
  ];
}

function optionPairs(option: string, values: readonly string[]): string[] {
  return values.flatMap((value) => [option, value]);
}

/**
 * Waits until the server answers and returns its version. Throws a `NoServerError` if its process
 * ends first.
 */
export async function waitUntilReady(
  home: ServerHome,
  server: ServerProcess,
): Promise<string | null> {
  const deadline = performance.now() + READY_LIMIT_MS;
  for (;;) {
    const answer = await probeOwnServer(server);
    if (answer.alive) return answer.version;
    const gone = (await processLife(server.pid)) === null;
    if (gone || performance.now() > deadline) {
      const problem = gone
        ? 'ended before it was ready'
        : `does not answer on ${addressOf(server)}`;
      const fix = gone ? '' : ` End process ${server.pid} and try again.`;
      throw new NoServerError(
        `The embedded Temporal server ${problem}.${fix}\n${await lastLogLines(home)}`,
      );
    }
    await sleep(POLL_MS);
  }
}

/**
 * Probes exactly this server process. If two homes start servers on one port at the same time, the
 * answer may come from the other server. The loser ends soon, and until then this reports no
 * answer.
 */
export async function probeOwnServer(server: ServerProcess): Promise<Probe> {
  const answer = await probeAddress(addressOf(server), { timeoutMs: ANSWER_LIMIT_MS });
  if (!answer.alive) return answer;
  const claims = (await serverProcesses()).filter((other) => other.port === server.port);
  const isClaimed =
    claims.length > 0 && claims.every((claim) => claim.databaseFile === server.databaseFile);
  if (!isClaimed) return { alive: false, reason: 'another server answers on its port' };
  const listener = await listenerAt(server.port);
  // If the system does not report listeners, the process table must suffice: it lists only this
  // user's processes.
  if (listener === undefined) return answer;
  const pids = claims.map(({ pid }) => pid);
  if (listener !== null && isOwn(listener) && (await isHeldBy(listener, pids))) return answer;
  return { alive: false, reason: 'a process that is not this server answers on its port' };
}

/** Returns the gRPC address of a server on this machine. */
export function addressOf(server: { readonly port: number }): string {
  return `${LOOPBACK}:${server.port}`;
}

async function lastLogLines(home: ServerHome): Promise<string> {
  const log = await readFile(home.logFile, 'utf8').catch(() => '');
  const lines = log.trimEnd().split('\n').slice(-LOG_LINES_SHOWN);
  return [`The last lines of its log (${home.logFile}):`, ...lines].join('\n  ');
}

async function openLog(file: string) {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_LIMIT_BYTES) await rename(file, `${file}.old`);
  return await open(file, 'a', PRIVATE.file);
}

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
