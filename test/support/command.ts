import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { builtProgram } from './built-program.js';

export interface CommandEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command as a process of its own. */
export interface RunningCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandEnd>;
  /** Resolves when stderr and stdout hold this so often; rejects when the command ends without. */
  says(text: string, times?: number): Promise<void>;
  /** What it has written to stderr so far. */
  said(): string;
  /** Waits for something that happens while the command runs; rejects when it ends before that. */
  until(event: Promise<unknown>): Promise<void>;
}

export interface CommandPlace {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts commands in a fresh folder with a fresh home; whatever is left ends with the test file. */
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
      return follow(child);
    },
  };
}

function follow(child: ReturnType<typeof spawn>): RunningCommand {
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => (said[name] += text));
  }
  const ended = once(child, 'close').then(([code]): CommandEnd => ({
    code: code as number | null,
    ...said,
  }));
  const until = async (event: Promise<unknown>): Promise<void> => {
    const end = await Promise.race([ended, event.then(() => null)]);
    if (end !== null) throw new Error(`it ended too early, with ${end.code}:\n${end.stderr}`);
  };
  const heard = (text: string, times: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if ((said.stderr + said.stdout).split(text).length > times) resolve();
      };
      child.stdout?.on('data', look);
      child.stderr?.on('data', look);
      look();
    });
  return {
    child,
    ended,
    until,
    says: (text, times = 1) => until(heard(text, times)),
    said: () => said.stderr,
  };
}

/** Neither keys, colors nor servers of whoever runs the tests. */
function harmless(): Record<string, string> {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'TEMPORAL_CLI_PATH'];
  return {
    ...Object.fromEntries(kept.flatMap((name) => [[name, process.env[name] ?? '']])),
    PERDURE_SERVER: 'own',
    // A server that a command starts ends with the tests, however they end.
    PERDURE_SERVER_OWNER_PID: String(process.pid),
  };
}
