import type { ScheduleOptionsAction } from '@temporalio/client';
import { askProblem } from '../../core/ask.js';
import type { RunInput } from '../../core/input/input.js';
import { workflowSummary } from '../../core/text/markdown.js';
import { visible } from '../../core/text/summaries.js';
import type { SendInput } from '../../workflows/send.js';
import { runInputOf, type RunSettings } from '../../updates/run-input.js';
import { InputError } from '../../core/input/input-error.js';
import type { ScheduleOptions } from './options.js';
import { summaryOf } from '../../updates/start.js';

/** What a firing does: a task run, or a message into an open run. Throws an `InputError`. */
export function scheduleAction(
  { id, agent, message, to, ...rest }: ScheduleOptions,
  taskQueue: string,
): ScheduleOptionsAction & { readonly args: [RunInput | SendInput] } {
  const { limits, context, args, tags, archive } = rest;
  const given = { limits, context, args, tags, archive };
  const settings: RunSettings = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  const common = { type: 'startWorkflow', taskQueue, workflowId: id } as const;
  if (to === undefined) {
    if (agent === undefined)
      throw new InputError('agent: missing; name the agent that does the work');
    const input = runInputOf(agent, { ...settings, message });
    return { ...common, workflowType: 'agent', args: [input], staticSummary: summaryOf(input) };
  }
  if (agent === undefined && Object.keys(settings).length > 0) {
    const [first] = Object.keys(settings);
    throw new InputError(
      `${first}: is for a run that is started; give the agent of run ${visible(to)} too, or leave it out`,
    );
  }
  const problem = askProblem({ message });
  if (problem !== null) throw new InputError(problem);
  const start = agent === undefined ? null : runInputOf(agent, { ...settings, open: true });
  const input: SendInput = { to, message, ...(start && { start }) };
  const staticSummary = workflowSummary(`to ${visible(to)}: ${visible(message)}`);
  return { ...common, workflowType: 'send', args: [input], staticSummary };
}
