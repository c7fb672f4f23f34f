import { fork, type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isObject } from '../../src/core/json.js';

/** A worker process of the bench. */
export interface Child {
  readonly pid: number;
  /** Unix time in milliseconds at which the child says that something happens next. */
  next(event: string): Promise<number>;
  /** Asks it to end and waits for that. */
  end(): Promise<void>;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
}

export interface ChildOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Folder for a CPU profile of each of its threads, written at its orderly end. */
  readonly profileFolder?: string | undefined;
}

/** Starts a TypeScript module as a process and resolves when it says `ready`. */
export async function startChild(
  script: URL,
  { env, profileFolder }: ChildOptions,
): Promise<Child> {
  const profile = profileFolder ? ['--cpu-prof', '--cpu-prof-dir', profileFolder] : [];
  const child = fork(fileURLToPath(script), {
    execArgv: ['--import', 'tsx', ...profile],
    env: { PATH: process.env['PATH'], ...env },
  });
  const told = new EventEmitter();
  child.on('message', (message) => {
    if (isObject(message)) told.emit(String(message['event']), Number(message['at']));
  });
  const next = (event: string): Promise<number> =>
    new Promise((resolve) => void told.once(event, resolve));
  await Promise.race([next('ready'), endedEarly(child, script)]);
  return {
    pid: child.pid ?? 0,
    next,
    end: () => stop(child, 'SIGTERM'),
    kill: () => stop(child, 'SIGKILL'),
  };
}

async function stop(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill(signal);
  await gone;
}

async function endedEarly(child: ChildProcess, script: URL): Promise<never> {
  await once(child, 'exit');
  throw new Error(`${script.pathname} ended with ${child.exitCode} before it was ready`);
}
