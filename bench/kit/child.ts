import { fork, type ChildProcess, type Serializable } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isObject } from '../../src/core/text/json.js';
import type { Reading } from './child-side.js';

/** A worker process of the bench. */
export interface Child {
  readonly pid: number;
  /** The reading that the child sends with its next message of this kind. */
  next(event: string): Promise<Reading>;
  reading(): Promise<Reading>;
  /** Sends a message; resolves when the child has answered with one of this kind. */
  ask(question: Serializable, answer: string): Promise<Reading>;
  /** Collects the child's garbage first; only for a child that was started with `collects`. */
  collected(): Promise<Reading>;
  /** Asks the child to end, and waits until it has. */
  end(): Promise<void>;
  /** Sends SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
}

export interface ChildOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Folder for a CPU profile of each of its threads, written when it exits in an orderly way. */
  readonly profileFolder?: string | undefined;
  /** Its threads can be asked to collect their garbage, so that memory can be compared. */
  readonly collects?: boolean;
}

const COLLECTOR = new URL('./collector-thread.js', import.meta.url).href;

/** Starts a module, in TypeScript or bundled, as a process and resolves when it says `ready`. */
export async function startChild(
  script: URL,
  { env, profileFolder, collects = false }: ChildOptions,
): Promise<Child> {
  const profile = profileFolder ? ['--cpu-prof', '--cpu-prof-dir', profileFolder] : [];
  const loader = script.pathname.endsWith('.ts') ? ['--import', 'tsx'] : [];
  const collector = collects ? ['--expose-gc', '--import', COLLECTOR] : [];
  const child = fork(fileURLToPath(script), {
    execArgv: [...loader, ...collector, ...profile],
    env: { PATH: process.env['PATH'], ...env },
  });
  const messages = new EventEmitter();
  child.on('message', (message) => {
    if (isObject(message)) messages.emit(String(message['event']), readingOf(message));
  });
  const next = (event: string): Promise<Reading> =>
    new Promise((resolve) => void messages.once(event, resolve));
  const ask = async (question: Serializable, answer: string): Promise<Reading> => {
    const reading = next(answer);
    child.send(question);
    return await reading;
  };
  await Promise.race([next('ready'), endedEarly(child, script)]);
  return {
    pid: child.pid ?? 0,
    next,
    ask,
    reading: () => ask('read', 'read'),
    collected: () => ask('collect', 'collected'),
    end: () => stop(child, 'SIGTERM'),
    kill: () => stop(child, 'SIGKILL'),
  };
}

function readingOf({ at, cpuMs, rssBytes, heapBytes }: Record<string, unknown>): Reading {
  return {
    at: Number(at),
    cpuMs: Number(cpuMs),
    rssBytes: Number(rssBytes),
    heapBytes: Number(heapBytes),
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
