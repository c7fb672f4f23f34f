import type { Client } from '@temporalio/client';
import type { Config } from '../config.js';
import type { ServerHandle } from '../server/server-handle.js';

/** Options that every command accepts. */
export interface GlobalOptions {
  /** A path; false for `--no-config`. */
  readonly config?: string | false;
  readonly address?: string;
  readonly namespace?: string;
  readonly taskQueue?: string;
  readonly json?: boolean;
  readonly ui?: boolean;
  /** Permissions of the built-in agent beyond reading; see `permissionsOf`. */
  readonly write?: boolean;
  readonly allowWrite?: readonly string[];
  readonly allowRead?: readonly string[];
}

export interface ServerRequest {
  /** False: start no server, and throw a `NoServerError` if none answers. Default true. */
  readonly start?: boolean;
}

/** The context of a command. Nothing is loaded or opened until the command asks for it. */
export interface CliContext {
  readonly options: GlobalOptions;
  readonly env: NodeJS.ProcessEnv;
  /** PERDURE_HOME. */
  readonly home: string;
  /** Writes a line of data to stdout. */
  readonly out: (line: string) => void;
  /** Writes a message, one line, to stderr. */
  readonly note: (line: string) => void;
  /** Whether a person is present: stdin, stdout, and stderr are a terminal. */
  readonly isTty: boolean;
  /** Whether messages may be colored. */
  readonly color: boolean;
  /** Loads the configuration once. Throws a `UsageError` that names the file and the fix. */
  config(): Promise<Config>;
  server(request?: ServerRequest): Promise<ServerHandle>;
  /** Connects once; the program closes the client when the command ends. */
  client(request?: ServerRequest): Promise<Client>;
  taskQueue(): Promise<string>;
}
