import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { builtProgram } from './built-program.js';
import { NO_THREAD } from './child-script.js';
import { Output, runHere } from './command-here.js';

export interface CommandEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running command. */
export interface FollowedCommand {
  readonly ended: Promise<CommandEnd>;
  /**
   * Resolves once stderr and stdout contain this text this often; rejects if the command ends
   * first.
   */
  prints(text: string, times?: number): Promise<void>;
  /** Its stderr output so far. */
  stderr(): string;
  /** Waits for an event during the command; rejects if the command ends first. */
  until(event: Promise<unknown>): Promise<void>;
}

/** The command in this process. */
export interface CommandHere extends FollowedCommand {
  /** Does what a first SIGINT or SIGTERM does. A second one ends a process. */
  interrupt(): void;
}

/** The command as a process of its own. */
export interface RunningCommand extends FollowedCommand {
  readonly child: ChildProcess;
}

export interface CommandPlace {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts commands in a fresh folder with a fresh home; anything left over is ended with the test
 * file.
 */
export async function commandLine() {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-cli-'));
  const program = await builtProgram();
  const children: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });
  return {
    folder,
    start(args: readonly string[], { cwd = folder, env = {} }: CommandPlace = {}): RunningCommand {
      const child = spawn(process.execPath, [program, ...args], {
        cwd,
        env: { ...harmless(), PERDURE_HOME: join(folder, 'home'), ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      children.push(child);
      return { child, ...follow(outputOf(child), codeOf(child)) };
    },
    /** Starts a command in this process, which is much cheaper. */
    here(args: readonly string[], { env = {} }: Omit<CommandPlace, 'cwd'> = {}): CommandHere {
      const own = { ...harmless(), PERDURE_HOME: join(folder, 'home'), NO_COLOR: '1', ...env };
      const output = new Output();
      const followed = follow(output, runHere(args, { env: own, output }));
      return { ...followed, interrupt: () => void output.emit('interrupt') };
    },
  };
}

function outputOf({ stdout, stderr }: ChildProcess): Output {
  const output = new Output();
  for (const [name, stream] of Object.entries({ stdout, stderr })) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output[name as 'stdout' | 'stderr'] += text;
      output.emit('text');
    });
  }
  return output;
}

async function codeOf(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'close')) as [number | null];
  return code;
}

/** Follows a command by its output. `code`: its exit code, once it has ended. */
function follow(output: Output, code: Promise<number | null>): FollowedCommand {
  const ended = code.then((exitCode): CommandEnd => ({
    code: exitCode,
    stdout: output.stdout,
    stderr: output.stderr,
  }));
  const until = async (event: Promise<unknown>): Promise<void> => {
    const end = await Promise.race([ended, event.then(() => null)]);
    if (end !== null) throw new Error(`it ended too early, with ${end.code}:\n${end.stderr}`);
  };
  const contains = (text: string, times: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if ((output.stderr + output.stdout).split(text).length > times) resolve();
      };
      output.on('text', look);
      look();
    });
  return {
    ended,
    until,
    prints: (text, times = 1) => until(contains(text, times)),
    stderr: () => output.stderr,
  };
}

/** Without the keys, colors, and servers of the environment that runs the tests. */
function harmless(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TEMPORAL_CLI_PATH'];
  return {
    ...Object.fromEntries(names.flatMap((name) => [[name, process.env[name] ?? '']])),
    ...NO_THREAD,
    PERDURE_SERVER: 'own',
    // A server that a command starts ends with the tests, even if they crash.
    PERDURE_SERVER_OWNER_PID: String(process.pid),
  };
}
