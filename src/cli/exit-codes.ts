/** What each command ends with; the numbers are a contract with scripts. */
export const EXIT = {
  completed: 0,
  failed: 1,
  usage: 2,
  /** The run lives on and waits for a person. */
  waiting: 3,
  /** The run lives on and waits to be mended. */
  blocked: 4,
  noServer: 5,
  /** By a limit. */
  stopped: 6,
  cancelled: 7,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command line, the configuration or the input is wrong. The message names the value and the cure. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
