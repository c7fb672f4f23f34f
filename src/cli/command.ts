import type { CliContext } from './context.js';
import type { ExitCode } from './exit-codes.js';

/** A command: reads its options, talks through the context, and says how it ended. */
export type Command<Options> = (context: CliContext, options: Options) => Promise<ExitCode>;
