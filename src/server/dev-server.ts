import { spawn } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { SEARCH_ATTRIBUTES } from '../temporal/grpc.js';
import { PRIVATE } from '../storage/files.js';
import {
  minimalEnvironment,
  messageOf,
  DEFAULT_NAMESPACE,
  DYNAMIC_CONFIG,
  LOOPBACK,
  sqlitePragmas,
  type Durability,
} from './server-settings.js';
import {
  isHeldBy,
  isOwn,
  listenerAt,
  processLife,
  serverProcesses,
  type ServerProcess,
} from './processes.js';
import { probeAddress, type Probe } from './namespace.js';
import type { ServerHome } from './server-home.js';
import { NoServerError } from '../core/errors.js';

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
    await new Promise((resolve, reject) => {
      child.once('spawn', resolve);
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
