import type { RunReading } from '../../history/read-run.js';
import { nextTarget } from '../../history/follow-target.js';
import { needsPerson } from '../../core/blocked.js';
import type { Pending, RunStatus } from '../../core/status.js';
import { callSummary } from '../../core/text/summaries.js';
import { printable } from '../../core/text/hidden.js';
import type { CliContext } from '../context.js';
import { nextCommandFor } from '../open-run.js';
import { columns } from '../format/table.js';

export interface Waiting {
  readonly run: RunReading;
  readonly status: RunStatus;
  /** Whether a worker may be there. */
  readonly isUp: boolean;
}

/** What a person can do about a run now: command lines to type, with what each is for. */
export async function nextSteps(context: CliContext, now: Waiting): Promise<readonly string[]> {
  const { run, status, isUp } = now;
  const { id } = run;
  const type = async (...words: readonly string[]): Promise<string> =>
    await nextCommandFor(context, run, words);
  if (status.status === 'done') return [`${await type('transcript', id)}   the messages`];
  const decisions = await Promise.all(
    status.pending.map(async (pending) => [
      question(run, pending),
      ...columns(
        await Promise.all(
          ANSWERS[pending.type].map(
            async ([as, what]) =>
              [await type('resolve', id, pending.call, '--as', as), what] as const,
          ),
        ),
      ).map((line) => `  ${line}`),
    ]),
  );
  const mendable = [...run.view.blocked.values()].some(({ reason }) => !needsPerson(reason));
  const acceptances = await Promise.all(
    [...run.view.blocked].flatMap(([call, { definition }]) =>
      definition === undefined
        ? []
        : type('resolve', id, call, '--as', 'accept', '--definition', definition),
    ),
  );
  return [
    ...decisions.flat(),
    ...acceptances.map((line) => `${line}   the tool may be called as it is now`),
    ...(mendable ? [`${await type('resume', id)}   when that is mended: try again at once`] : []),
    ...(status.status === 'paused' ? [`${await type('resume', id)}   let it go on`] : []),
    ...(nextTarget(run.view) === null
      ? columns([
          [await type('send', id, 'MESSAGE'), 'give it a message'],
          [await type('close', id), 'end it'],
        ])
      : [`${await type('attach', id)}   ${isUp ? 'follow it' : 'bring a worker and follow it'}`]),
  ];
}

const ANSWERS: Readonly<Record<Pending['type'], readonly (readonly [string, string])[]>> = {
  outcome_unknown: [
    ['happened', 'it did; tell the model what it gave with --result JSON'],
    ['retry', 'it did not: do it again'],
    ['abandon', 'give it up; the model is told'],
  ],
  safety_check: [
    ['retry', 'acknowledge it: do it'],
    ['abandon', 'do not do it; the model is told'],
  ],
};

function question({ view }: RunReading, pending: Pending): string {
  const { call, tool } = pending;
  const asked = view.state?.turn.batch?.calls.find(({ id }) => id === call);
  const what = asked === undefined ? tool : callSummary(asked);
  if (pending.type === 'safety_check') {
    const { arguments: args } = pending;
    return `Look whether this may be done: ${what}, with ${printable(args)}. Then type one of:`;
  }
  const { idempotencyKey } = pending;
  return `Find out whether this happened: ${what} (idempotency key ${idempotencyKey}). Then type one of:`;
}
