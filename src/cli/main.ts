import { CommanderError } from 'commander';
import { learnSecrets } from '../secrets/known.js';
import { registerCommands } from './commands.js';
import type { Command } from './command.js';
import type { GlobalOptions } from './context.js';
import { createContext, type OwnContext } from './create-context.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { createProgram } from './program.js';
import { reportError } from './reports/report-error.js';

/**
 * The whole program: reads the command line, runs the command, and gives what the process is to
 * end with. Never throws.
 */
export async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ExitCode> {
  learnSecrets({ env });
  let context: OwnContext | undefined;
  let code: ExitCode = EXIT.completed;
  const program = createProgram();
  registerCommands(program, async (used, own, load) => {
    const options: GlobalOptions = used.optsWithGlobals();
    context = createContext(options, env);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- commands.ts enters what each reads
    const command = (await load()) as Command<object>;
    code = await command(context, own);
  });
  const json = args.includes('--json');
  try {
    await program.parseAsync([...args], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.completed;
    return reportError(error, { env, json });
  } finally {
    await context?.close();
  }
}
