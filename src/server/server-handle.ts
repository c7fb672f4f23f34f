import { DEFAULT_PORT, type Durability } from './server-settings.js';

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
