import { format, inspect } from 'node:util';
import type { Client } from '@temporalio/client';
import { CommanderError, type Command as Program } from 'commander';
import type { Config } from '../config.js';
import { InputError } from '../core/errors.js';
import { learnSecrets } from '../secrets/known.js';
import { redact } from '../secrets/redact.js';
import type { Stores } from '../storage/tool-lock.js';
import type { ServerHandle } from '../server/server-settings.js';
import { perdureHome } from '../storage/files.js';
import { resolveTaskQueue } from '../temporal/task-queue.js';
import {
  type CliContext,
  type GlobalOptions,
  type ServerRequest,
  EXIT,
  type ExitCode,
  UsageError,
} from './context.js';
import { isColorWanted, isTerminal, writeData, writeMessage } from './format/format.js';
import { openConnection, openServer } from './hosting/hosting.js';
import { permissionsOf } from './input/option-parsers.js';
import { createProgram } from './program.js';
import { reportError } from './reports/next-command.js';

/** Runs the program as this process, and ends the process even if a handle is still open. */
export async function start(): Promise<void> {
  // The reader of our output may close it early, as `head` does.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => process.exit());
  }
  guardOutput();
  const code = await main(process.argv.slice(2), process.env);
  process.exitCode = code;
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}

/** Parses the command line, runs the command, and returns the exit code. Never throws. */
export async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<ExitCode> {
  learnSecrets({ env });
  let context: OwnContext | undefined;
  let code: ExitCode = EXIT.completed;
  const program = createProgram(async (command, entry, options) => {
    context = createContext(entry.optsWithGlobals<GlobalOptions>(), env);
    code = await command.run(context, options);
  });
  const json = args.includes('--json');
  try {
    await program.parseAsync(withoutMisplacedHelp(program, helpAsOption(args)), { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.completed;
    return reportError(error, { env, json, options: context?.options ?? program.opts() });
  } finally {
    await context?.close();
  }
}

/** Turns `help run` into `run --help`, which loads the declaration of the command. */
function helpAsOption([first, ...rest]: readonly string[]): string[] {
  if (first === undefined) return [];
  return first === 'help' ? [...rest, '--help'] : [first, ...rest];
}

/**
 * Removes `--help` and all else after a command that does not exist. The error about the command says more than the
 * help of all commands would.
 */
function withoutMisplacedHelp(entry: Program, args: string[], from = 0): string[] {
  if (!args.some((arg) => arg === '--help' || arg === '-h')) return args;
  const at = firstOperand(entry, args, from);
  const name = args[at];
  if (name === undefined || name === 'help' || entry.commands.length === 0) return args;
  const command = entry.commands.find((one) => one.name() === name);
  return command === undefined
    ? args.slice(0, at + 1)
    : withoutMisplacedHelp(command, args, at + 1);
}

/** Returns the index of the first word that is neither an option nor its value. */
function firstOperand(entry: Program, args: readonly string[], from: number): number {
  let at = from;
  while (args[at]?.startsWith('-')) {
    const option = entry.options.find(({ long, short }) => [long, short].includes(args[at]));
    at += option?.required ? 2 : 1;
  }
  return at;
}

/** The context of a command, which the program closes when the command ends. */
interface OwnContext extends CliContext {
  /** Closes everything that was opened. Never throws. */
  close(): Promise<void>;
}

/** Creates the context of a command. Opens nothing until the command asks for it. */
export function createContext(options: GlobalOptions, env: NodeJS.ProcessEnv): OwnContext {
  const home = perdureHome(env);
  const closers: (() => Promise<void>)[] = [];
  let config: Promise<Config> | undefined;
  let server: Promise<ServerHandle> | undefined;
  let client: Promise<Client> | undefined;
  let stores: Promise<Required<Stores>> | undefined;
  let console: Promise<string | null> | undefined;
  const color = isColorWanted(env);
  const json = options.json ?? false;
  const connect = async (request: ServerRequest): Promise<Client> => {
    const opened = await openConnection(context, request);
    closers.push(opened.close);
    return opened.client;
  };
  const serve = async (): Promise<string | null> => {
    const { serveWhileFollowing } = await import('./hosting/serving.js');
    const listening = await serveWhileFollowing(context);
    if (listening !== null) closers.push(() => listening.close());
    return listening?.url ?? null;
  };
  const context: OwnContext = {
    options,
    env,
    home,
    out: (line) => writeData(line, { json, color }),
    note: (line) => writeMessage(line, color),
    isTty: isTerminal(),
    color,
    config: () => (config ??= loadConfigOf(options, env)),
    server: (request = {}) =>
      (server ??= openServer(context, request).catch((error: unknown) => {
        // A worker asks again until the server answers.
        server = undefined;
        throw error;
      })),
    client: (request = {}) => (client ??= connect(request)),
    stores: () => (stores ??= openStoresOf(context)),
    console: () => (console ??= serve()),
    async taskQueue() {
      if (options.taskQueue !== undefined) return options.taskQueue;
      return resolveTaskQueue(await context.config(), env);
    },
    async close() {
      await Promise.allSettled(closers.map((close) => close()));
    },
  };
  return context;
}

async function openStoresOf(context: CliContext): Promise<Required<Stores>> {
  const { home, env } = context;
  const [{ openStores }, { sealedBlobs }, { keyringFrom }] = await Promise.all([
    import('../storage/file-stores.js'),
    import('../encryption/sealed-stores.js'),
    import('../encryption/keyring.js'),
  ]);
  const { blobs, ...stores } = openStores(home, env);
  return {
    ...stores,
    blobs: sealedBlobs(blobs, keyringFrom((await context.config()).encryption, env)),
  };
}

async function loadConfigOf(options: GlobalOptions, env: NodeJS.ProcessEnv): Promise<Config> {
  const { loadConfig } = await import('./input/load-config.js');
  const permissions = permissionsOf(options);
  const config = await loadConfig({
    file: options.config,
    folder: process.cwd(),
    env,
    permissions,
  });
  const { keyringFrom } = await import('../encryption/keyring.js');
  try {
    keyringFrom(config.encryption, env);
  } catch (error) {
    if (!InputError.isInstance(error)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
  return config;
}

/** The console methods that tools of a worker in this process may use. */
const METHODS = ['log', 'info', 'debug', 'warn', 'error', 'trace'] as const;

/**
 * Redacts everything that this process writes to stderr, and everything that tools and agents write
 * to its console. Stdout carries requested data, such as an exported history, and stays as it is.
 */
function guardOutput(): void {
  const write = process.stderr.write.bind(process.stderr);
  const guarded = (chunk: string | Uint8Array, ...rest: []): boolean =>
    write(typeof chunk === 'string' ? redact(chunk) : chunk, ...rest);
  process.stderr.write = guarded;
  for (const method of METHODS) {
    const original = console[method].bind(console);
    console[method] = (...values: unknown[]) => original('%s', redact(format(...values)));
  }
  const log = console.log;
  console.dir = (value: unknown, options?: object) => log('%s', inspect(value, options));
}
