import type { ScheduleOptionsAction } from '@temporalio/client';
import { askProblem } from '../../core/ask.js';
import { InputError } from '../../core/errors.js';
import type { RunInput } from '../../core/input/input.js';
import { isObject, textField } from '../../core/json.js';
import { workflowSummary } from '../../core/text/markdown.js';
import { visible } from '../../core/text/summaries.js';
import { createRunInput, type RunSettings } from '../../updates/run-input.js';
import { runSummary } from '../../updates/start.js';
import type { SendInput } from '../../workflows/send.js';
import type { ScheduleOptions } from './options.js';

/** Returns what a firing does: it starts a task run or sends a message. Throws an `InputError`. */
export function scheduleAction(
  { id, agent, message, to, ...rest }: ScheduleOptions,
  taskQueue: string,
): ScheduleOptionsAction & {
  readonly args: [RunInput | SendInput];
  readonly workflowType: string;
} {
  const settings = settingsOf(rest);
  const common = { type: 'startWorkflow', taskQueue, workflowId: id } as const;
  if (to === undefined) {
    if (agent === undefined)
      throw new InputError('agent: expected the name of an agent, got none; add it');
    const input = createRunInput(agent, { ...settings, message });
    return { ...common, workflowType: 'agent', args: [input], staticSummary: runSummary(input) };
  }
  if (agent === undefined && Object.keys(settings).length > 0) {
    const [first] = Object.keys(settings);
    throw new InputError(
      `${first}: expected only with "agent", because it applies to a run that is started; add the agent of run ${visible(to)}, or remove it`,
    );
  }
  const problem = askProblem({ message });
  if (problem !== null) throw new InputError(problem);
  const start = agent === undefined ? null : createRunInput(agent, { ...settings, open: true });
  const input: SendInput = { to, message, ...(start && { start }) };
  const staticSummary = workflowSummary(`to ${visible(to)}: ${visible(message)}`);
  return { ...common, workflowType: 'send', args: [input], staticSummary };
}

/** What a firing does, read from the input of its workflow. */
export type FiringOptions = RunSettings &
  Pick<ScheduleOptions, 'message' | 'to'> & { readonly agent?: string };

/** Returns the options that made this input of a firing's workflow. */
export function firingOptions(input: unknown): FiringOptions {
  if (!isObject(input)) return { message: '' };
  const { to } = input;
  const run = to === undefined ? input : input['start'];
  return {
    message: textField(input, 'message'),
    ...(typeof to === 'string' && { to }),
    ...(isObject(run) && { agent: textField(run, 'agent'), ...settingsOf(run) }),
  };
}

/** Returns the settings of a run that are given, without anything else. */
function settingsOf({
  limits,
  context,
  args,
  tags,
  archive,
  by,
  rules,
  unattended,
  modelAttempts,
}: RunSettings): RunSettings {
  const given = { limits, context, args, tags, archive, by, rules, unattended, modelAttempts };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
