import { once } from 'node:events';
import { dirname, relative, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT } from '../exit-codes.js';
import { catchInterrupt } from '../interrupt.js';
import { CONFIG_NAMES, configFile } from '../load-config.js';
import { watchCode, type CodeWatch } from '../watch-code.js';
import { startWorkerChild } from '../worker-child.js';

const FIRST_RESTART_MS = 1_000;
const LONGEST_RESTART_MS = 30_000;

export interface DevOptions {
  readonly livePort?: number;
  readonly liveHost?: string;
}

/** Server and worker, until interrupted; the worker starts anew when code changes, or when it dies. */
export const dev: Command<DevOptions> = async (context, { livePort, liveHost }) => {
  const live = [
    ...(livePort === undefined ? [] : ['--live-port', String(livePort)]),
    ...(liveHost === undefined ? [] : ['--live-host', liveHost]),
  ];
  const signal = catchInterrupt();
  let restartMs = FIRST_RESTART_MS;
  while (!signal.aborted) {
    const over = new AbortController();
    const change = nextChange(context, AbortSignal.any([signal, over.signal]));
    const worker = startWorkerChild(context.options, live);
    const first = await Promise.race([worker.ended, change]);
    const isChange = first === 'changed';
    if (!isChange) await untilWorthwhile(context, { code: first, change, restartMs });
    restartMs = isChange ? FIRST_RESTART_MS : Math.min(2 * restartMs, LONGEST_RESTART_MS);
    over.abort();
    await worker.stop();
  }
  return EXIT.completed;
};

/** A worker that ended by itself: a mistake waits for its mend, a mishap is tried again. */
async function untilWorthwhile(
  { say }: CliContext,
  ended: { code: number | null; change: Promise<unknown>; restartMs: number },
): Promise<void> {
  const { code, change, restartMs } = ended;
  if (code === EXIT.usage) {
    say('Waiting for a change …');
    await change;
    return;
  }
  say(`The worker has ended (${code ?? 'killed'}); it starts again.`);
  await Promise.race([change, pause(restartMs)]);
}

/** Resolves when code has changed, and when the signal ends the waiting. */
async function nextChange(context: CliContext, signal: AbortSignal): Promise<'changed'> {
  const folder = process.cwd();
  const changed = new AbortController();
  const unwatch = watchCode(watchedIn(folder, context), (path) => changed.abort(path));
  try {
    await once(AbortSignal.any([signal, changed.signal]), 'abort');
  } finally {
    unwatch();
  }
  if (!signal.aborted) {
    context.say(`${relative(folder, String(changed.signal.reason))} has changed.`);
  }
  return 'changed';
}

/** The folder of the configuration; where there is none yet, only its coming counts. */
function watchedIn(folder: string, { options, env }: CliContext): CodeWatch {
  const file =
    options.config === undefined ? configFile({ folder, env }) : resolve(folder, options.config);
  return file === null
    ? { folder, deep: false, counts: (name) => CONFIG_NAMES.includes(name) }
    : { folder: dirname(file), deep: true };
}
