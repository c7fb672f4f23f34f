import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from '../command.js';
import type { CliContext, GlobalOptions } from '../context.js';
import { EXIT } from '../exit-codes.js';
import { catchInterrupt } from '../hosting/interrupt.js';
import { CONFIG_NAMES, configFile } from '../input/load-config.js';
import { watchCode } from '../hosting/watch-code.js';
import { startWorkerChild } from '../hosting/worker-child.js';

const FIRST_RESTART_MS = 1_000;
const LONGEST_RESTART_MS = 30_000;

export interface DevOptions {
  readonly livePort?: number;
  readonly liveHost?: string;
}

/**
 * Server and worker, until interrupted; the worker starts anew when code changes, or when it dies. The
 * configuration is the one that was there at the start: a file that appears later is never executed.
 */
export const dev: Command<DevOptions> = async (context, { livePort, liveHost }) => {
  const live = [
    ...(livePort === undefined ? [] : ['--live-port', String(livePort)]),
    ...(liveHost === undefined ? [] : ['--live-host', liveHost]),
  ];
  const signal = catchInterrupt();
  const folder = process.cwd();
  const file = configFile({ file: context.options.config, folder, env: context.env });
  const options: GlobalOptions = { ...context.options, config: file ?? false };
  const unwatch = file === null ? noteConfig(context, folder) : () => undefined;
  let restartMs = FIRST_RESTART_MS;
  while (!signal.aborted) {
    const over = new AbortController();
    const change = nextChange(context, file, AbortSignal.any([signal, over.signal]));
    const worker = startWorkerChild(options, live);
    const first = await Promise.race([worker.ended, change]);
    const isChange = first === 'changed';
    if (!isChange) await untilWorthwhile(context, { code: first, change, restartMs });
    restartMs = isChange ? FIRST_RESTART_MS : Math.min(2 * restartMs, LONGEST_RESTART_MS);
    over.abort();
    await worker.stop();
  }
  unwatch();
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

/** Resolves when code beside or below the configuration has changed, and when the signal ends the waiting. */
async function nextChange(
  context: CliContext,
  file: string | null,
  signal: AbortSignal,
): Promise<'changed'> {
  const changed = new AbortController();
  const unwatch =
    file === null
      ? () => undefined
      : watchCode({ folder: dirname(file), deep: true }, (path) => changed.abort(path));
  try {
    await once(AbortSignal.any([signal, changed.signal]), 'abort');
  } finally {
    unwatch();
  }
  if (!signal.aborted) {
    context.note(`${relative(process.cwd(), String(changed.signal.reason))} has changed.`);
  }
  return 'changed';
}

/** Says of a configuration that appears that it is not loaded: a model may have written it. */
function noteConfig({ say, options }: CliContext, folder: string): () => void {
  if (options.config === false) return () => undefined;
  return watchCode({ folder, deep: false, counts: isConfig }, (path) => {
    if (!existsSync(path)) return;
    say(
      `${basename(path)} has appeared and is not loaded: dev began without a configuration. ` +
        'If you wrote it, start dev again.',
    );
  });
}

function isConfig(name: string): boolean {
  return CONFIG_NAMES.includes(name);
}
