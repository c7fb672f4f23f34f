import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import type { GlobalOptions } from '../context.js';
import { placeFlags } from '../reports/next-command.js';

/** A worker as a process of its own, so that changed code is really loaded anew. */
export interface WorkerChild {
  /** Resolves with the exit code when it has ended; null when it was killed. */
  readonly ended: Promise<number | null>;
  /** Lets it end in good order. Resolves when it has ended. */
  stop(): Promise<void>;
}

/** A worker gives its calls five seconds; after these it is killed. */
const STOP_MS = 10_000;

/**
 * Starts `perdure worker` with the same options. It is in a process group of its own, where the
 * terminal's Ctrl-C does not reach it, and ends by itself when this process is gone.
 */
export function startWorkerChild(
  options: GlobalOptions,
  flags: readonly string[] = [],
): WorkerChild {
  const program = process.argv[1] ?? '';
  const args = [...process.execArgv, program, 'worker', ...placeFlags(options), ...flags];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
  return {
    ended,
    async stop() {
      child.kill('SIGTERM');
      const late = pause(STOP_MS, 'late', { ref: false });
      if ((await Promise.race([ended, late])) === 'late') child.kill('SIGKILL');
      await ended;
    },
  };
}
