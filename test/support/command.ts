import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../bin/perdure.js', import.meta.url));

export interface CommandEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command as a process of its own, from the sources. */
export interface RunningCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandEnd>;
  /** Resolves when stderr or stdout hold this; rejects when the command ends without. */
  says(text: string): Promise<void>;
}

export interface CommandPlace {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts commands in a fresh folder with a fresh home; whatever is left ends with the test file. */
export async function commandLine() {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-cli-'));
  const children: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });
  return {
    folder,
    start(args: readonly string[], { cwd = folder, env = {} }: CommandPlace = {}): RunningCommand {
      const child = spawn(process.execPath, [PROGRAM, ...args], {
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
  return {
    child,
    ended,
    says: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if ((said.stderr + said.stdout).includes(text)) resolve();
        };
        child.stdout?.on('data', look);
        child.stderr?.on('data', look);
        look();
        void ended.then((end) =>
          reject(new Error(`it ended with ${end.code} and without "${text}":\n${end.stderr}`)),
        );
      }),
  };
}

/** Neither keys, colours nor servers of whoever runs the tests. */
function harmless(): Record<string, string> {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'TEMPORAL_CLI_PATH'];
  return {
    ...Object.fromEntries(kept.flatMap((name) => [[name, process.env[name] ?? '']])),
    PERDURE_FROM: 'sources',
    PERDURE_SERVER: 'own',
  };
}
