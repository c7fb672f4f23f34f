import type { Command as Entry } from 'commander';
import type { CliContext } from './context.js';
import type { ExitCode } from './exit-codes.js';

/** One command of the program. */
export interface Command<Options> {
  /** Declares the arguments and options that the command takes beside the global ones. */
  readonly declare?: (entry: Entry) => Entry;
  /**
   * Runs the command and returns the exit code of the process. The options hold every declared
   * argument and option under its camel-case name.
   */
  readonly run: (context: CliContext, options: Options) => Promise<ExitCode>;
}
