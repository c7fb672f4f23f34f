import type { Client } from '@temporalio/client';
import type { Command as Entry } from 'commander';
import type { Config } from '../config.js';
import { PERDURE_ERROR_CODES } from '../core/errors.js';
import type { ServerHandle } from '../server/server-settings.js';
import type { Stores } from '../storage/tool-lock.js';

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
  /** Opens the stores of this home once, with the keys of the configuration. */
  stores(): Promise<Required<Stores>>;
  taskQueue(): Promise<string>;
  /** Serves the console until the command ends. Returns its address; null if it cannot be served. */
  console(): Promise<string | null>;
}

/** The exit codes of all commands. Scripts rely on the numbers. */
export const EXIT = {
  completed: 0,
  failed: 1,
  usage: 2,
  /** The run is still open and waits for a person. */
  waiting: 3,
  /** The run is still open and is blocked. */
  blocked: 4,
  noServer: 5,
  /** A limit stopped the run. */
  stopped: 6,
  cancelled: 7,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/**
 * The codes of errors that only the command and its MCP server have, in addition to those of
 * `PerdureError`. docs/command.md documents all of them. A code never changes its meaning.
 */
const COMMAND_ERROR_CODES = [
  'changed',
  'no_request',
  'no_worker',
  'run_ended',
  'server',
  'unavailable',
  'unexpected',
  'usage',
  'waits_for_decision',
] as const;

type CommandErrorCode = (typeof COMMAND_ERROR_CODES)[number];

/** Every `code` that `--json` and the MCP server report. */
export const ERROR_CODES = [...PERDURE_ERROR_CODES, ...COMMAND_ERROR_CODES] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** An error of a command whose code programs can rely on. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly code: CommandErrorCode;

  constructor(code: CommandErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.code = code;
  }
}

/**
 * The command line, the configuration, or the input is wrong. The message names the value and the
 * fix.
 */
export class UsageError extends CommandError {
  override readonly name = 'UsageError';

  constructor(message: string, options: ErrorOptions = {}) {
    super('usage', message, options);
  }
}

/** One command of the program. */
export interface Command<Options> {
  /** Declares the arguments and options of the command, in addition to the global options. */
  readonly declare?: (entry: Entry) => Entry;
  /**
   * Runs the command and returns the exit code of the process. The options hold every declared
   * argument and option under its camel-case name.
   */
  readonly run: (context: CliContext, options: Options) => Promise<ExitCode>;
}

/** A command in the help text; its module is loaded when the command is used. */
export interface Listed {
  readonly summary: string;
  readonly load: () => Promise<Command<never>>;
  /** Commands below it, such as `mcp accept`. */
  readonly commands?: Readonly<Record<string, Listed>>;
}

/** A group of commands below a name, such as `schedule create`. */
export interface ListedGroup {
  readonly summary: string;
  readonly commands: Readonly<Record<string, Listed>>;
}
