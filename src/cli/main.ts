import { CommanderError } from 'commander';
import { learnSecrets } from '../secrets/known.js';
import { registerCommands } from './commands.js';
import type { Command } from './command.js';
import type { GlobalOptions, CliContext, ServerWish } from './context.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { createProgram } from './program.js';
import { reportError } from './reports/report-error.js';
import type { Client } from '@temporalio/client';
import type { Config } from '../config.js';
import { homeOf } from '../storage/home.js';
import { taskQueueOf } from '../temporal/task-queue.js';
import type { ServerHandle } from '../server/server-handle.js';
import { openClient, openServer } from './hosting/open-server.js';
import { permissionsOf } from './permissions.js';
import { colorWanted, isTerminal, writeData, writeTalk } from './format/output.js';

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

/** The context as the program owns it. */
interface OwnContext extends CliContext {
  /** Closes what was opened; never throws. */
  close(): Promise<void>;
}

/** Nothing is loaded or opened before a command asks for it. */
export function createContext(options: GlobalOptions, env: NodeJS.ProcessEnv): OwnContext {
  const home = homeOf(env);
  const closers: (() => Promise<void>)[] = [];
  let loading: Promise<Config> | undefined;
  let opening: Promise<ServerHandle> | undefined;
  let connecting: Promise<Client> | undefined;
  const color = colorWanted(env);
  const how = { json: options.json ?? false, color };
  const context: OwnContext = {
    options,
    env,
    home,
    out: (line) => writeData(line, how),
    say: (line) => writeTalk(line, color),
    isTty: isTerminal(),
    color,
    config: () => (loading ??= loadConfigOf(options, env)),
    server: (wish) => (opening ??= openServer(context, wish ?? {})),
    client: (wish?: ServerWish) =>
      (connecting ??= openClient(context, wish ?? {}).then(({ client, close }) => {
        closers.push(close);
        return client;
      })),
    async taskQueue() {
      if (options.taskQueue !== undefined) return options.taskQueue;
      return taskQueueOf(await context.config(), env);
    },
    async close() {
      await Promise.allSettled(closers.map((closer) => closer()));
    },
  };
  return context;
}

async function loadConfigOf(options: GlobalOptions, env: NodeJS.ProcessEnv): Promise<Config> {
  const { loadConfig } = await import('./load-config.js');
  const permissions = permissionsOf(options);
  return await loadConfig({ file: options.config, folder: process.cwd(), env, permissions });
}
