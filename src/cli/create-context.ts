import type { Client } from '@temporalio/client';
import { type Config } from '../config.js';
import { homeOf } from '../storage/home.js';
import { taskQueueOf } from '../temporal/task-queue.js';
import type { ServerHandle } from '../server/server-handle.js';
import type { CliContext, GlobalOptions, ServerWish } from './context.js';
import { openClient, openServer } from './hosting/open-server.js';
import { permissionsOf } from './permissions.js';
import { colorWanted, isTerminal, writeData, writeTalk } from './format/output.js';

/** The context as the program owns it. */
export interface OwnContext extends CliContext {
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
