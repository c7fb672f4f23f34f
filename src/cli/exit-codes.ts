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
 * The command line, the configuration, or the input is wrong. The message names the value and the
 * fix.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
