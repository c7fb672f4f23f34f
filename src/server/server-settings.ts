import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { PRIVATE } from '../storage/files.js';

/** The namespace that is used if none is named. */
export const DEFAULT_NAMESPACE = 'default';

/** The embedded server listens only on the loopback interface. */
export const LOOPBACK = '127.0.0.1';
/** The port of a Temporal server by convention. */
const DEFAULT_PORT = 7233;
/** The distance of the Temporal UI's port from the gRPC port of a dev server. */
export const UI_PORT_OFFSET = 1000;

/** How many hours the server keeps closed runs. The dev server's own default is 24. */
export const RETENTION_HOURS = 720;

/**
 * The dynamic configuration of the embedded server, the same as
 * `docker/dynamicconfig/perdure.yaml`.
 *
 * - Poll rates: by default, a shard delivers tasks in ticks of 50 ms, four times the total duration
 *   of an agent's step.
 * - Partitions: with few workers, more than one partition per task queue only adds forwarding.
 * - Buffered queries: with the default of 1, a second query during a workflow task waits for more
 *   than a second.
 * - Workflow task timeout: how long a run makes no progress if its worker is killed during a task.
 * - Reuse interval of workflow ids: with the default of 1 s, a run that continues in a new segment
 *   soon after the last one started must wait for the rest of that second.
 * - Updates in flight: with the default of 10 per run, more callers than that get no answers: with each update
 *   that the server refuses, it also drops the workflow task that would answer the others.
 * - Fairness: without it, the server ignores the tenants of runs, and serves who came first.
 * - Worker commands: a cancellation reaches an activity at once, not with its next heartbeat.
 * - Search attributes: the dev server's own default reads the namespace from the database under a lock for each
 *   start and each write of them, which takes a sixth of its processor time for a run of one reply.
 */
export const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': 2000,
  'history.transferProcessorMaxPollHostRPS': 5000,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  'history.MaxBufferedQueryCount': 100,
  'history.defaultWorkflowTaskTimeout': '5s',
  'system.enableCancelActivityWorkerCommand': true,
  'frontend.WorkerCommandsEnabled': true,
  'history.workflowIdReuseMinimalInterval': '100ms',
  'history.maxInFlightUpdates': 1000,
  'matching.enableFairness': true,
  'system.forceSearchAttributesCacheRefreshOnRead': false,
} as const satisfies Record<string, string | number | boolean>;

/**
 * How durable commits are. `normal` loses nothing if a process dies, but a power failure may lose
 * the last commits. `full` flushes each commit to the disk, and a step takes about a quarter
 * longer.
 */
export type Durability = 'normal' | 'full';

/** Returns the SQLite pragmas of the database file. */
export function sqlitePragmas(durability: Durability): Readonly<Record<string, string>> {
  return { journal_mode: 'wal', synchronous: durability };
}

/** Returns the message of an error, or the text of another thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const NAMES = ['PATH', 'HOME', 'USER', 'TMPDIR', 'LANG', 'TZ', 'SystemRoot', 'USERPROFILE'];
/** The variables that pip needs to reach its index. */
const PIP_VARIABLES = /^(?:PIP_|XDG_|SSL_CERT_|REQUESTS_CA_|https?_proxy$|no_proxy$|all_proxy$)/i;

/** Returns the environment for a program that must not receive the keys of this process. */
export function minimalEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const variables = NAMES.flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  // The server fails without a user name, which many containers do not have.
  return { USER: 'perdure', ...Object.fromEntries(variables) };
}

/** Returns the minimal environment with the settings of pip and of the network. */
export function downloadEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const settings = Object.entries(env).filter(([name]) => PIP_VARIABLES.test(name));
  return { ...minimalEnvironment(env), ...Object.fromEntries(settings) };
}

/** A Temporal server that answers, and how it was found. */
export interface ServerHandle {
  /** The `host:port` of its gRPC service. */
  readonly address: string;
  readonly namespace: string;
  /** The URL of the Temporal UI; null if none is known. */
  readonly uiUrl: string | null;
  /**
   * `address`: named by the caller. `adopted`: already running. `started`: started by this call.
   */
  readonly how: 'address' | 'adopted' | 'started';
  /** It was started with a new database, which has no runs; absent for any other server. */
  readonly isNew?: boolean;
  /** The version of the server, such as `1.32.0`; null if it does not report one. */
  readonly version: string | null;
  /** The process id of the embedded server of `home`; null for any other server. */
  readonly pid: number | null;
  /** PERDURE_HOME as an absolute path. */
  readonly home: string;
}

export interface ServerOptions {
  /** PERDURE_HOME: where the embedded server keeps its state. */
  readonly home: string;
  /** The `host:port` of the server to use. If set, no server is started. */
  readonly address?: string;
  readonly namespace?: string;
  /** Default `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
  /** Receives messages, one line each, about what takes time or was changed. */
  readonly note?: (line: string) => void;
  /** Default `normal`. */
  readonly durability?: Durability;
  /**
   * False: neither use a server at the default port nor listen there. Default true, unless the
   * variable PERDURE_SERVER is `own`.
   */
  readonly adoptDefault?: boolean;
  /** Default 7233. */
  readonly defaultPort?: number;
  /**
   * A server that this call starts ends soon after the process with this id, however that process
   * dies. Default: the variable PERDURE_SERVER_OWNER_PID; without it, the server outlives its
   * starter. Meant for tests, which must not leave a server behind.
   */
  readonly ownerPid?: number;
}

/**
 * Returns the process with which a started server ends; null if the server outlives its starter.
 */
export function ownerPid(options: ServerOptions): number | null {
  const env = options.env ?? process.env;
  const pid = options.ownerPid ?? Number(env['PERDURE_SERVER_OWNER_PID'] ?? '');
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}

/** Returns the default port; null if this home must not use it. */
export function defaultPort(options: ServerOptions): number | null {
  const env = options.env ?? process.env;
  const isAllowed = options.adoptDefault ?? env['PERDURE_SERVER'] !== 'own';
  return isAllowed ? (options.defaultPort ?? DEFAULT_PORT) : null;
}

const port = z.int().min(1).max(65535);

const schema = z.object({
  /** Null if the server was stopped. */
  pid: z.int().positive().nullable(),
  port,
  uiPort: port,
  /** The version of the server that last opened the database; null if unknown. */
  version: z.string().nullable(),
  /** The version of the server that created the database; null if unknown. */
  createdBy: z.string().nullable(),
  /** An ISO 8601 time; null for a server that was found running without a record. */
  startedAt: z.string().nullable(),
});

/** The content of `PERDURE_HOME/server.json` about the embedded server, running or not. */
export type ServerRecord = Readonly<z.infer<typeof schema>>;

/** Returns null if there is no readable record. A record may be outdated. */
export async function readRecord(file: string): Promise<ServerRecord | null> {
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Replaces the record in one step, so no reader sees a partial one. */
export async function writeRecord(file: string, record: ServerRecord): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: PRIVATE.file });
  await rename(draft, file);
}
