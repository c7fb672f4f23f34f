import type { Command as Entry } from 'commander';
import type { CliContext } from './context.js';
import type { ExitCode } from './exit-codes.js';

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
