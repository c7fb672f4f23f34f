import type { Overlap } from '../../client/schedule/options.js';
import { visible } from '../../core/text/summaries.js';
import { withOptions } from '../input/options.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { nextCommandAbout, nextCommandOf } from '../reports/next-command.js';
import { withSchedules } from './schedules.js';

export interface ScheduleNoteOptions {
  readonly id: string;
  /** The reason, for people. */
  readonly note?: string;
}

export interface ScheduleTriggerOptions {
  readonly id: string;
  readonly overlap?: Overlap;
}

const ID = ['<id>', 'the schedule'] as const;

/** `schedule pause ID`: pauses a schedule until `schedule resume`. */
export const pauseSchedule: Command<ScheduleNoteOptions> = {
  declare: (entry) => withOptions(entry.argument(...ID), 'note'),
  async run(context, { id, note }) {
    await withSchedules(context, (schedules) => schedules.pause(id, { note }));
    const resume = nextCommandAbout(context, ['schedule resume', id]);
    const text = `is paused. Runs that it has started continue. Resume it with: ${resume}`;
    return report(context, { id, text, fields: { paused: true } });
  },
};

/** `schedule resume ID`: resumes a paused schedule. */
export const resumeSchedule: Command<ScheduleNoteOptions> = {
  declare: (entry) => withOptions(entry.argument(...ID), 'note'),
  async run(context, { id, note }) {
    await withSchedules(context, (schedules) => schedules.resume(id, { note }));
    return report(context, { id, text: 'fires again at its times.', fields: { paused: false } });
  },
};

/** `schedule trigger ID`: fires a schedule now, even if it is paused. */
export const triggerSchedule: Command<ScheduleTriggerOptions> = {
  declare: (entry) => withOptions(entry.argument(...ID), 'overlap'),
  async run(context, { id, overlap }) {
    const how = overlap === undefined ? {} : { overlap };
    await withSchedules(context, (schedules) => schedules.trigger(id, how));
    const list = nextCommandOf(context, ['list', '--id-prefix', id]);
    const text = `fires now. List its runs with: ${list}`;
    return report(context, { id, text, fields: { triggered: true } });
  },
};

/** `schedule delete ID`: deletes the schedule, and leaves the runs that it has started. */
export const deleteSchedule: Command<{ readonly id: string }> = {
  declare: (entry) => entry.argument(...ID),
  async run(context, { id }) {
    await withSchedules(context, (schedules) => schedules.delete(id));
    const text = 'is deleted. Runs that it has started continue.';
    return report(context, { id, text, fields: { deleted: true } });
  },
};

function report(
  context: CliContext,
  { id, text, fields }: { readonly id: string; readonly text: string; readonly fields: object },
): ExitCode {
  context.note(`Schedule ${visible(id)} ${text}`);
  if (context.options.json) context.out(JSON.stringify({ id, ...fields }));
  return EXIT.completed;
}
