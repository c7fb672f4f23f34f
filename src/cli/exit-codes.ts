import { PERDURE_ERROR_CODES } from '../core/errors.js';

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
