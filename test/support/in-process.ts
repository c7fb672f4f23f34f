import type { Client } from '@temporalio/client';
import type { Command, GlobalOptions, ExitCode } from '../../src/cli/context.js';
import { createContext } from '../../src/cli/main.js';

/** The result of a command that ran in this process. */
export interface CommandOutput {
  readonly code: ExitCode;
  /** Returns the lines, joined by newlines. */
  readonly stdout: string;
  readonly stderr: string;
}

export interface Place extends GlobalOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly home: string;
  /** The client of a rig; default: the command connects to the server. */
  readonly client?: Client;
}

/** Runs a command in this process and captures its output. Rejects with the error that the command throws. */
export async function runInProcess<Options>(
  command: Command<Options>,
  options: Options,
  place: Place,
): Promise<CommandOutput> {
  const { env, home, client, ...global } = place;
  const stdout: string[] = [];
  const stderr: string[] = [];
  const context = createContext(global, {
    PERDURE_HOME: home,
    PERDURE_SERVER: 'own',
    NO_COLOR: '1',
    ...env,
  });
  try {
    const code = await command.run(
      {
        ...context,
        ...(client && { client: () => Promise.resolve(client) }),
        out: (line) => stdout.push(line),
        note: (line) => stderr.push(line),
      },
      options,
    );
    return { code, stdout: stdout.join('\n'), stderr: stderr.join('\n') };
  } finally {
    await context.close();
  }
}
