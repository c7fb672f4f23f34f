import type { RunReading } from '../../history/read-run.js';
import { nextTarget } from '../../history/follow-target.js';
import type { RunStatus } from '../../core/status.js';
import type { CliContext } from '../context.js';
import { nextCommandFor } from './next-command.js';
import { columns } from '../format/table.js';

export interface StatusReading {
  readonly run: RunReading;
  readonly status: RunStatus;
  /** Whether a worker seems to be running. */
  readonly hasWorker: boolean;
}

/**
 * Returns the command lines that a person can run now, each with its purpose. The commands for
 * decisions are shown elsewhere.
 */
export async function nextSteps(
  context: CliContext,
  { run, status, hasWorker }: StatusReading,
): Promise<readonly string[]> {
  const { id } = run;
  const command = async (...words: readonly string[]): Promise<string> =>
    await nextCommandFor(context, run, words);
  if (status.status === 'done') return [`${await command('transcript', id)}   read the messages`];
  const { grants = [], undoable = [] } = status;
  const undo = undoable.findLast(({ state }) => state === undefined);
  return [
    ...(run.view.blocked.size > 0
      ? [`${await command('resume', id)}   retry at once, after a fix`]
      : []),
    ...(status.status === 'paused' ? [`${await command('resume', id)}   resume it`] : []),
    ...(grants.length > 0 ? [`${await command('revoke', id, 'GRANT')}   end a grant`] : []),
    ...(undo === undefined ? [] : [`${await command('undo', id, undo.call)}   undo this call`]),
    ...(nextTarget(run.view) === null
      ? columns([
          [await command('send', id, 'MESSAGE'), 'send it a message'],
          [await command('close', id), 'end it'],
        ])
      : [
          `${await command('attach', id)}   ${hasWorker ? 'follow it' : 'start a worker and follow it'}`,
        ]),
  ];
}
