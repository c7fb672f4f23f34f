import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GlobalOptions } from '../context.js';
import { isObject } from '../../core/json.js';
import { REPORTS_FILES } from '../input/load-config.js';
import { placeFlags } from '../reports/next-command.js';

/** A worker in its own process, so that changed code is loaded again. */
export interface WorkerChild {
  /** Resolves with the exit code when the process has ended; null if it was killed. */
  readonly ended: Promise<number | null>;
  /**
   * Resolves with the files that the configuration imports; null if the process ends before it has
   * them.
   */
  readonly files: Promise<readonly string[] | null>;
  /** Asks the worker to shut down. Resolves when the process has ended. */
  stop(): Promise<void>;
}

/** A worker allows its calls five seconds to end; after this time it is killed. */
const STOP_MS = 10_000;

/**
 * Starts `perdure worker` with the same options. It has its own process group, so Ctrl-C in the
 * terminal does not reach it. It ends by itself when this process ends.
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
    env: { ...process.env, [REPORTS_FILES]: '1' },
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
  const files = new Promise<readonly string[] | null>((resolve) => {
    child.on('message', (message) => resolve(filesIn(message)));
    void ended.then(() => resolve(null));
  });
  return {
    ended,
    files,
    async stop() {
      child.kill('SIGTERM');
      const late = sleep(STOP_MS, 'late', { ref: false });
      if ((await Promise.race([ended, late])) === 'late') child.kill('SIGKILL');
      await ended;
    },
  };
}

function filesIn(message: unknown): readonly string[] | null {
  const files: unknown = isObject(message) ? message[REPORTS_FILES] : null;
  return Array.isArray(files) ? files.filter((path) => typeof path === 'string') : null;
}
