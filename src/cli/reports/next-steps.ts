import { openCallById } from '../../core/turn.js';
import type { RunReading } from '../../history/read-run.js';
import { nextTarget } from '../../history/follow-target.js';
import { needsPerson } from '../../core/blocked.js';
import type { Pending, RunStatus } from '../../core/status.js';
import { callSummary } from '../../core/text/summaries.js';
import { printable } from '../../core/text/hidden.js';
import type { CliContext } from '../context.js';
import { nextCommandFor } from './next-command.js';
import { columns } from '../format/table.js';

export interface StatusReading {
  readonly run: RunReading;
  readonly status: RunStatus;
  /** Whether a worker seems to be running. */
  readonly hasWorker: boolean;
}

/** Returns the command lines that a person can run now, each with its purpose. */
export async function nextSteps(
  context: CliContext,
  reading: StatusReading,
): Promise<readonly string[]> {
  const { run, status, hasWorker } = reading;
  const { id } = run;
  const command = async (...words: readonly string[]): Promise<string> =>
    await nextCommandFor(context, run, words);
  if (status.status === 'done') return [`${await command('transcript', id)}   read the messages`];
  const decisions = await Promise.all(
    status.pending.map(async (pending) => [
      questionFor(run, pending),
      ...columns(
        await Promise.all(
          DECISIONS[pending.type].map(
            async ([as, what]) =>
              [await command('resolve', id, pending.call, '--as', as), what] as const,
          ),
        ),
      ).map((line) => `  ${line}`),
    ]),
  );
  const fixable = [...run.view.blocked.values()].some(({ reason }) => !needsPerson(reason));
  const acceptances = await Promise.all(
    [...run.view.blocked].flatMap(([call, { definition }]) =>
      definition === undefined
        ? []
        : command('resolve', id, call, '--as', 'accept', '--definition', definition),
    ),
  );
  return [
    ...decisions.flat(),
    ...acceptances.map((line) => `${line}   accept the tool in its current form`),
    ...(fixable ? [`${await command('resume', id)}   retry at once, after a fix`] : []),
    ...(status.status === 'paused' ? [`${await command('resume', id)}   resume it`] : []),
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

const DECISIONS: Readonly<Record<Pending['type'], readonly (readonly [string, string])[]>> = {
  outcome_unknown: [
    ['happened', 'it happened; pass its result to the model with --result JSON'],
    ['retry', 'it did not happen: call the tool again'],
    ['abandon', 'give the call up and inform the model'],
  ],
  safety_check: [
    ['retry', 'acknowledge the check: execute the call'],
    ['abandon', 'do not execute the call; inform the model'],
  ],
};

function questionFor({ view }: RunReading, pending: Pending): string {
  const { call, tool } = pending;
  const pendingCall = view.state === null ? undefined : openCallById(view.state, call);
  const what = pendingCall === undefined ? tool : callSummary(pendingCall);
  if (pending.type === 'safety_check') {
    const { arguments: args } = pending;
    return `Decide whether this may be executed: ${what}, with ${printable(args)}. Then run one of:`;
  }
  const { idempotencyKey } = pending;
  return `Find out whether this happened: ${what} (idempotency key ${idempotencyKey}). Then run one of:`;
}
