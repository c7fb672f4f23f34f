import { DEFAULT_PORT, type Durability } from './server-settings.js';

/** A Temporal server that answers, and how it was come by. */
export interface ServerHandle {
  /** `host:port` of its gRPC service. */
  readonly address: string;
  readonly namespace: string;
  /** Of the Temporal UI, where one is known to be served. */
  readonly uiUrl: string | null;
  /** `address`: named by the caller. `adopted`: it ran already. `started`: by this call. */
  readonly how: 'address' | 'adopted' | 'started';
  /** Of the server, e.g. `1.32.0`; null when it does not say. */
  readonly version: string | null;
  /** Of the embedded server of `home`; null for any other server. */
  readonly pid: number | null;
  /** PERDURE_HOME, absolute. */
  readonly home: string;
}

export interface ServerOptions {
  /** PERDURE_HOME: where the embedded server keeps its state. */
  readonly home: string;
  /** `host:port` of the server to use; then none is ever started. */
  readonly address?: string;
  readonly namespace?: string;
  /** Default `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
  /** Hears what takes time, in lines for people. */
  readonly say?: (line: string) => void;
  /** Default `normal`. */
  readonly durability?: Durability;
  /**
   * `false`: keep away from the default port, neither use a server that listens there nor
   * listen there. Default true, unless the variable PERDURE_SERVER is `own`.
   */
  readonly adoptDefault?: boolean;
  /** Default 7233. */
  readonly defaultPort?: number;
  /**
   * A server that this call starts ends soon after the process with this id, however that process
   * dies. Default: the variable PERDURE_SERVER_OWNER_PID; without it, the server outlives its
   * starter. For tests, which must not leave a server behind.
   */
  readonly ownerPid?: number;
}

/** Returns the process with which a started server ends; null if the server outlives its starter. */
export function ownerPid(options: ServerOptions): number | null {
  const env = options.env ?? process.env;
  const pid = options.ownerPid ?? Number(env['PERDURE_SERVER_OWNER_PID'] ?? '');
  return Number.isInteger(pid) && pid > 0 ? pid : null;
}

/** Null when this home is to keep away from it. */
export function defaultPort(options: ServerOptions): number | null {
  const env = options.env ?? process.env;
  const wanted = options.adoptDefault ?? env['PERDURE_SERVER'] !== 'own';
  return wanted ? (options.defaultPort ?? DEFAULT_PORT) : null;
}
