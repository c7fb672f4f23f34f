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
}

/** Null when this home is to keep away from it. */
export function defaultPort(options: ServerOptions): number | null {
  const env = options.env ?? process.env;
  const wanted = options.adoptDefault ?? env['PERDURE_SERVER'] !== 'own';
  return wanted ? (options.defaultPort ?? DEFAULT_PORT) : null;
}
