import type { Command } from '../../src/cli/command.js';
import type { GlobalOptions } from '../../src/cli/context.js';
import { createContext } from '../../src/cli/main.js';
import type { ExitCode } from '../../src/cli/exit-codes.js';

export interface Said {
  readonly code: ExitCode;
  /** Lines, joined. */
  readonly stdout: string;
  readonly stderr: string;
}

export interface Place extends GlobalOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly home: string;
}

/** A command in this very process, with all it says caught. Rejects with what the command throws. */
export async function say<Options>(
  command: Command<Options>,
  options: Options,
  place: Place,
): Promise<Said> {
  const { env, home, ...global } = place;
  const stdout: string[] = [];
  const stderr: string[] = [];
  const context = createContext(global, {
    PERDURE_HOME: home,
    PERDURE_SERVER: 'own',
    NO_COLOR: '1',
    ...env,
  });
  try {
    const code = await command(
      { ...context, out: (line) => stdout.push(line), say: (line) => stderr.push(line) },
      options,
    );
    return { code, stdout: stdout.join('\n'), stderr: stderr.join('\n') };
  } finally {
    await context.close();
  }
}
