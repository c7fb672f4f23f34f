import type { Client } from '@temporalio/client';
import type { Config } from '../config.js';
import type { ServerHandle } from '../server/server-handle.js';

/** Options that every command takes. */
export interface GlobalOptions {
  /** `--no-config` makes it false. */
  readonly config?: string | false;
  readonly address?: string;
  readonly namespace?: string;
  readonly taskQueue?: string;
  readonly json?: boolean;
  readonly ui?: boolean;
  /** What the built-in agent may do beside reading; see `permissionsOf`. */
  readonly write?: boolean;
  readonly allowWrite?: readonly string[];
  readonly allowRead?: readonly string[];
}

/** `start: false`: no server is started; where none answers, a `NoServerError` is thrown. Default true. */
export interface ServerWish {
  readonly start?: boolean;
}

/** What a command is handed: the world, and what is costly only when asked for. */
export interface CliContext {
  readonly options: GlobalOptions;
  readonly env: NodeJS.ProcessEnv;
  /** PERDURE_HOME. */
  readonly home: string;
  /** A line of data, to stdout. */
  readonly out: (line: string) => void;
  /** A line of talk, to stderr. */
  readonly say: (line: string) => void;
  /** A person reads along: stderr and stdin are a terminal. */
  readonly isTty: boolean;
  /** Whether talk may be colored. */
  readonly color: boolean;
  /** Loaded once. Throws a `UsageError` that names file and cure. */
  config(): Promise<Config>;
  server(wish?: ServerWish): Promise<ServerHandle>;
  /** Closed by the program at its end. */
  client(wish?: ServerWish): Promise<Client>;
  taskQueue(): Promise<string>;
}
